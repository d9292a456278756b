#include "mapping.h"

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "arena.h"
#include "patience.h"
#include "spool.h"

namespace foundry {
namespace {

struct Piece {
    size_t size;
    uint32_t device;
    bool ready;
};
using Pieces = std::map<CUdeviceptr, Piece>;
struct Gap {
    CUdeviceptr address;
    size_t size;
};

constexpr uint32_t most_devices = 64;

enum class Exports : uint8_t { unknown, yes, no };

std::mutex mutex;
std::atomic<Exports> exports[most_devices];
Pieces *pieces;               // made on first use
uint64_t peers[most_devices]; // bit p of peers[d]: device p may reach memory of device d

Pieces &all() {
    if (!pieces) pieces = new Pieces;
    return *pieces;
}

// With the lock held: the parts of [address, address + size) that no piece covers; false while one of them is in the
// making.
bool find_gaps(CUdeviceptr address, size_t size, std::vector<Gap> *gaps) {
    CUdeviceptr at = address, end = address + size;
    auto piece = all().upper_bound(address);
    if (piece != all().begin() && std::prev(piece)->first + std::prev(piece)->second.size > address) --piece;
    for (; at < end; ++piece) {
        if (piece == all().end() || piece->first >= end) {
            gaps->push_back({at, static_cast<size_t>(end - at)});
            return true;
        }
        if (!piece->second.ready) return false;
        if (piece->first > at) gaps->push_back({at, static_cast<size_t>(piece->first - at)});
        at = piece->first + piece->second.size;
    }
    return true;
}

bool has(uint32_t device, CUdevice_attribute attribute) {
    int value = 0;
    return real.cuDeviceGetAttribute &&
           real.cuDeviceGetAttribute(&value, attribute, static_cast<CUdevice>(device)) == CUDA_SUCCESS && value;
}

// So that other processes may open it.
bool wants_export(uint32_t device) {
    Exports now = exports[device].load(std::memory_order_relaxed);
    if (now == Exports::unknown) {
        now = has(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) ? Exports::yes : Exports::no;
        exports[device].store(now, std::memory_order_relaxed);
    }
    return now == Exports::yes;
}

CUmemAllocationProp properties(uint32_t device) {
    CUmemAllocationProp property{};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    property.location.id = static_cast<int>(device);
    property.allocFlags.gpuDirectRDMACapable =
        has(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) ? 1 : 0;
    if (wants_export(device)) property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return property;
}

CUresult set_access(CUdeviceptr address, size_t size, uint32_t device, uint64_t reach) {
    std::vector<CUmemAccessDesc> access;
    for (uint32_t peer = 0; peer < most_devices; ++peer)
        if (peer == device || (reach >> peer & 1)) {
            CUmemAccessDesc entry{};
            entry.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
            entry.location.id = static_cast<int>(peer);
            entry.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            access.push_back(entry);
        }
    return real.cuMemSetAccess(address, size, access.data(), access.size());
}

// Where the driver says that memory can be exported and then makes none that can, what cannot will do.
CUresult create(CUmemGenericAllocationHandle *handle, size_t size, CUmemAllocationProp property, uint32_t device) {
    CUresult result = real.cuMemCreate(handle, size, &property, 0);
    if (property.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
        (result != CUDA_ERROR_NOT_SUPPORTED && result != CUDA_ERROR_NOT_PERMITTED &&
         result != CUDA_ERROR_INVALID_VALUE))
        return result;
    property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    const CUresult plain = real.cuMemCreate(handle, size, &property, 0);
    if (plain == CUDA_SUCCESS) exports[device].store(Exports::no, std::memory_order_relaxed);
    return plain == CUDA_SUCCESS ? plain : result;
}

CUresult make_piece(const CUmemAllocationProp &property, uint32_t device, uint64_t reach, const Gap &gap) {
    CUmemGenericAllocationHandle handle;
    CUresult result = create(&handle, gap.size, property, device);
    if (result != CUDA_SUCCESS) return result;
    result = real.cuMemMap(gap.address, gap.size, 0, handle, 0);
    // The mapping alone keeps the memory from here on.
    if (CUresult released = real.cuMemRelease(handle); released != CUDA_SUCCESS)
        finding_once("handle-kept", "a memory handle could not be released (CUresult %d): its memory is not given back",
                     released);
    if (result != CUDA_SUCCESS) return result;
    result = set_access(gap.address, gap.size, device, reach);
    if (result != CUDA_SUCCESS) real.cuMemUnmap(gap.address, gap.size);
    return result;
}

} // namespace

CUresult map_granules(uint32_t device, CUdeviceptr address, size_t size) {
    if (device >= most_devices) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Gap> gaps;
    uint64_t reach;
    for (Turns turns;;) {
        {
            std::lock_guard<std::mutex> lock(mutex);
            gaps.clear();
            reach = peers[device];
            if (find_gaps(address, size, &gaps)) {
                for (const Gap &gap : gaps) all()[gap.address] = {gap.size, device, false};
                break;
            }
        }
        if (!turns.next()) return CUDA_ERROR_NOT_READY;
    }
    if (gaps.empty()) return CUDA_SUCCESS;

    CUmemAllocationProp property = properties(device);
    size_t made = 0;
    CUresult result = CUDA_SUCCESS;
    for (; made < gaps.size() && result == CUDA_SUCCESS; ++made)
        result = make_piece(property, device, reach, gaps[made]);
    if (result != CUDA_SUCCESS)
        for (size_t index = 0; index + 1 < made; ++index) real.cuMemUnmap(gaps[index].address, gaps[index].size);

    std::lock_guard<std::mutex> lock(mutex);
    for (const Gap &gap : gaps)
        if (result == CUDA_SUCCESS)
            all()[gap.address].ready = true;
        else
            all().erase(gap.address);
    return result;
}

CUresult unmap_granules(CUdeviceptr address, size_t size) {
    std::vector<Gap> gone;
    {
        std::lock_guard<std::mutex> lock(mutex);
        for (auto piece = all().lower_bound(address);
             piece != all().end() && piece->first + piece->second.size <= address + size; ++piece)
            if (piece->second.ready) gone.push_back({piece->first, piece->second.size});
    }
    CUresult result = CUDA_SUCCESS;
    for (Gap &gap : gone)
        if (CUresult unmapped = real.cuMemUnmap(gap.address, gap.size); unmapped != CUDA_SUCCESS) {
            result = unmapped;
            gap.size = 0;
        }
    std::lock_guard<std::mutex> lock(mutex);
    for (const Gap &gap : gone)
        if (gap.size) all().erase(gap.address);
    return result;
}

CUresult map_import(uint32_t device, CUdeviceptr address, size_t size, CUmemGenericAllocationHandle memory) {
    if (device >= most_devices) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = real.cuMemMap(address, size, 0, memory, 0);
    if (result != CUDA_SUCCESS) return result;
    uint64_t reach;
    {
        std::lock_guard<std::mutex> lock(mutex);
        reach = peers[device];
        all()[address] = {size, device, true};
    }
    return set_access(address, size, device, reach);
}

bool mapped_pieces(CUdeviceptr address, size_t size, std::vector<MappedPiece> *found) {
    std::lock_guard<std::mutex> lock(mutex);
    auto piece = all().upper_bound(address);
    if (piece == all().begin()) return false;
    CUdeviceptr at = (--piece)->first;
    for (; piece != all().end() && piece->first == at && piece->second.ready && at < address + size; ++piece) {
        found->push_back({at, piece->second.size});
        at += piece->second.size;
    }
    return at >= address + size;
}

bool mapping_exports(uint32_t device) {
    return device < most_devices && exports[device].load(std::memory_order_relaxed) == Exports::yes;
}

bool granules_mapped(CUdeviceptr address, size_t size) {
    std::vector<Gap> gaps;
    std::lock_guard<std::mutex> lock(mutex);
    return find_gaps(address, size, &gaps) && gaps.empty();
}

CUresult map_peer(uint32_t device, uint32_t peer) {
    if (device >= most_devices || peer >= most_devices) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Gap> present;
    uint64_t reach;
    {
        std::lock_guard<std::mutex> lock(mutex);
        reach = peers[device] |= uint64_t{1} << peer;
        for (const auto &[address, piece] : all())
            if (piece.device == device && piece.ready) present.push_back({address, piece.size});
    }
    CUresult result = CUDA_SUCCESS;
    for (const Gap &gap : present)
        if (CUresult set = set_access(gap.address, gap.size, device, reach); set != CUDA_SUCCESS) result = set;
    return result;
}

void mapping_forget() {
    new (&mutex) std::mutex;
    pieces = nullptr;
    for (uint64_t &peer : peers) peer = 0;
    for (auto &one : exports) one.store(Exports::unknown);
}

} // namespace foundry
