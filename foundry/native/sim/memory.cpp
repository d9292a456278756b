// cuMemAlloc and its kin: memory of a context on its device.
#include "memory.h"

#include "backing.h"
#include "capture.h"
#include "pools.h"

namespace sim {
namespace {

constexpr std::uint64_t pitch_alignment = 512;

CUresult allocate(CUdeviceptr *address, std::uint64_t size) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!address || size == 0) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(refuse_unsafe());
    std::uint64_t base = 0;
    SIM_TRY(take_backing(*find_device(context->device), size, &base));
    Region region;
    region.base = base;
    region.size = size;
    region.device = context->device;
    region.context = context->handle;
    add_region(region);
    *address = base;
    return CUDA_SUCCESS;
}

void release(const Region &region) {
    Device &device = *find_device(region.device);
    switch (region.kind) {
    case RegionKind::device:
    case RegionKind::graph:
        give_back_backing(device, region.base, region.size);
        break;
    case RegionKind::pool:
        give_back_backing(device, region.base, region.size);
        if (Pool *pool = find_pool(region.pool)) pool->used -= region.size;
        break;
    case RegionKind::managed:
    case RegionKind::pinned:
        give_back_pages(reinterpret_cast<void *>(region.base), region.size);
        break;
    case RegionKind::peer:
        release_peer(region);
        break;
    default:
        break;
    }
}

} // namespace

CUresult free_region(std::uint64_t address) {
    Region *region = region_at(address);
    if (!region || region->base != address) return CUDA_ERROR_INVALID_VALUE;
    if (region->kind != RegionKind::device && region->kind != RegionKind::pool && region->kind != RegionKind::managed)
        return CUDA_ERROR_INVALID_VALUE;
    release(*region);
    remove_region(address);
    return CUDA_SUCCESS;
}

void clear_memory(Context &context) {
    for (auto entry = regions().begin(); entry != regions().end();)
        if (entry->second.context == context.handle) {
            release(entry->second);
            entry = regions().erase(entry);
        } else {
            ++entry;
        }
}

} // namespace sim

using sim::Context;
using sim::Region;
using sim::RegionKind;

CUresult sim::cuMemGetInfo_v2(size_t *free, size_t *total) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!free || !total) return CUDA_ERROR_INVALID_VALUE;
    Device &device = *find_device(context->device);
    *total = device.total;
    *free = device.limit - device.used;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    return allocate(dptr, bytesize);
}

CUresult sim::cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                 unsigned int ElementSizeBytes) {
    if (!pPitch || WidthInBytes == 0 || Height == 0 ||
        (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    std::size_t pitch = (WidthInBytes + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
    SIM_TRY(allocate(dptr, pitch * Height));
    *pPitch = pitch;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemFree_v2(CUdeviceptr dptr) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    SIM_TRY(refuse_unsafe());
    return dptr ? free_region(dptr) : CUDA_SUCCESS;
}

CUresult sim::cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!dptr || bytesize == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(refuse_unsafe());
    void *pages = take_pages(bytesize);
    if (!pages) return CUDA_ERROR_OUT_OF_MEMORY;
    Region region;
    region.base = reinterpret_cast<std::uint64_t>(pages);
    region.size = bytesize;
    region.kind = RegionKind::managed;
    region.device = context->device;
    region.context = context->handle;
    region.flags = flags;
    *dptr = add_region(region).base;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise, CUmemLocation) {
    Region *region = region_at(devPtr);
    return region && region->kind == RegionKind::managed && device_accessible(devPtr, count) ? CUDA_SUCCESS
                                                                                             : CUDA_ERROR_INVALID_VALUE;
}
