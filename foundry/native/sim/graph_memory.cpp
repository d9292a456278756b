#include "graph_memory.h"

#include "backing.h"
#include "regions.h"

namespace sim {
namespace {

std::map<std::uint64_t, std::weak_ptr<GraphMemory>> &known() {
    static auto *all = new std::map<std::uint64_t, std::weak_ptr<GraphMemory>>;
    return *all;
}

std::shared_ptr<GraphMemory> find(CUdeviceptr address) {
    auto found = known().find(address);
    return found == known().end() ? nullptr : found->second.lock();
}

} // namespace

CUresult make_memory(int device, std::uint64_t size, std::shared_ptr<GraphMemory> *memory) {
    auto made = std::make_shared<GraphMemory>();
    SIM_TRY(take_backing(*find_device(device), size, &made->address));
    made->size = size;
    made->device = device;
    Region region;
    region.base = made->address;
    region.size = size;
    region.kind = RegionKind::graph;
    region.device = device;
    add_region(region);
    known()[made->address] = made;
    *memory = std::move(made);
    return CUDA_SUCCESS;
}

CUresult start_memory(GraphMemory &memory) {
    if (memory.live) return CUDA_ERROR_INVALID_VALUE;
    memory.live = true;
    spoil(reinterpret_cast<void *>(memory.address), memory.size);
    return CUDA_SUCCESS;
}

CUresult end_memory(CUdeviceptr address) {
    std::shared_ptr<GraphMemory> memory = find(address);
    if (!memory || !memory->live) return CUDA_ERROR_INVALID_VALUE;
    memory->live = false;
    return CUDA_SUCCESS;
}

bool graph_memory_live(CUdeviceptr address) {
    std::shared_ptr<GraphMemory> memory = find(address);
    return memory && memory->live;
}

std::uint64_t graph_memory_used(int device, bool only_live) {
    std::uint64_t total = 0;
    for (auto &[unused, weak] : known())
        if (std::shared_ptr<GraphMemory> memory = weak.lock())
            if (memory->device == device && (memory->live || !only_live)) total += memory->size;
    return total;
}

} // namespace sim
