// Device memory: served from the arenas, and by the driver where they can't.
#include "../restore/engine.h"
#include "../table/call.h"
#include "arena.h"
#include "arena_blocks.h"
#include "counters.h"
#include "memory.h"
#include "pool.h"
#include "ranges.h"
#include "spool.h"
#include "state.h"

namespace foundry {

bool current_device(uint32_t *device) {
    CUdevice current;
    if (!real.cuCtxGetDevice || real.cuCtxGetDevice(&current) != CUDA_SUCCESS || current < 0) return false;
    *device = static_cast<uint32_t>(current);
    return true;
}

bool arena_serves(uint32_t *device) {
    if (!armed() || !current_device(device)) return false;
    // A context that came by a way of its own (a green one) may be the first on its device.
    if (!arena_base(*device, nullptr)) {
        size_t arena_size = 0;
        const CUdeviceptr base = mode() == FOUNDRY_MODE_RESTORE ? restore::arena_base(*device, &arena_size) : 0;
        arena_reserve(*device, base, arena_size);
    }
    return armed();
}

void served_outside(CUdeviceptr address, size_t size, const char *function) {
    count(counters.allocations_outside);
    range_add(FOUNDRY_RANGE_OUTSIDE, address, size);
    finding_once("memory-outside",
                 "%s: %zu bytes at 0x%llx were placed by the driver; their address will not come back", function, size,
                 static_cast<unsigned long long>(address));
}

void served_unplaced(CUdeviceptr address, size_t size, const char *function) {
    if (!armed() || !size) return;
    served_outside(address, size, function);
    disarm("the driver did not tell the current device, so an allocation could not be placed");
}

CUresult served_instead(CUresult result, const Block &block, const CUdeviceptr *address, size_t size,
                        const char *function) {
    if (result == CUDA_SUCCESS) {
        arena_stand_in(block, *address);
        served_outside(*address, size, function);
    } else {
        arena_undo(block);
    }
    return result;
}

namespace {

// Rows of a pitched allocation begin at multiples of this.
size_t pitch_alignment() {
    static std::atomic<size_t> known{0};
    constexpr size_t usual = 512;
    size_t alignment = known.load(std::memory_order_relaxed);
    if (alignment) return alignment;
    if (capture_depth() > 0) return usual;
    CUdeviceptr probe;
    alignment = usual;
    if (real.cuMemAllocPitch_v2(&probe, &alignment, 1, 1, 4) != CUDA_SUCCESS) return usual;
    real.cuMemFree_v2(probe);
    if (alignment < usual) alignment = usual;
    known.store(alignment, std::memory_order_relaxed);
    return alignment;
}

} // namespace

CUresult free_placed(CUdeviceptr address, bool *placed) {
    CUresult result = arena_free(address);
    *placed = result != CUDA_ERROR_NOT_FOUND;
    return result;
}

} // namespace foundry

using namespace foundry;

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
    uint32_t device;
    if (!dptr || !bytesize || !arena_serves(&device)) {
        CUresult result = DRIVER(cuMemAlloc_v2, dptr, bytesize);
        if (result == CUDA_SUCCESS) served_unplaced(*dptr, bytesize, "cuMemAlloc");
        return result;
    }
    Block block{};
    pool_sweep();
    if (arena_allocate(device, current_arena(), bytesize, FOUNDRY_ORIGIN_PLAIN, &block) == CUDA_SUCCESS) {
        *dptr = block.address;
        return CUDA_SUCCESS;
    }
    return served_instead(DRIVER(cuMemAlloc_v2, dptr, bytesize), block, dptr, bytesize, "cuMemAlloc");
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
    uint32_t device;
    bool plain = dptr && pPitch && WidthInBytes && Height &&
                 (ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
    if (!plain || !arena_serves(&device)) {
        CUresult result = DRIVER(cuMemAllocPitch_v2, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
        if (result == CUDA_SUCCESS) served_unplaced(*dptr, *pPitch * Height, "cuMemAllocPitch");
        return result;
    }
    size_t alignment = pitch_alignment(), pitch, size;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    Block block{};
    if (!__builtin_add_overflow(WidthInBytes, alignment - 1, &pitch)) {
        pitch = pitch / alignment * alignment;
        pool_sweep();
        if (!__builtin_mul_overflow(pitch, Height, &size))
            result = arena_allocate(device, current_arena(), size, FOUNDRY_ORIGIN_PITCH, &block);
    }
    if (result == CUDA_SUCCESS) {
        *dptr = block.address;
        *pPitch = pitch;
        return CUDA_SUCCESS;
    }
    result = DRIVER(cuMemAllocPitch_v2, dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    return served_instead(result, block, dptr, *pPitch * Height, "cuMemAllocPitch");
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
    bool placed = false;
    CUresult result = free_placed(dptr, &placed);
    if (placed) return result;
    result = DRIVER(cuMemFree_v2, dptr);
    if (result == CUDA_SUCCESS) arena_stand_in_gone(dptr);
    if (result == CUDA_SUCCESS && armed() && !range_remove(FOUNDRY_RANGE_OUTSIDE, dptr) &&
        !range_remove(FOUNDRY_RANGE_MANAGED, dptr) && !range_remove(FOUNDRY_RANGE_POOL, dptr))
        range_remove(FOUNDRY_RANGE_PEER, dptr);
    return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    CUresult result = DRIVER(cuMemAllocManaged, dptr, bytesize, flags);
    if (result == CUDA_SUCCESS && armed() && dptr) range_add(FOUNDRY_RANGE_MANAGED, *dptr, bytesize);
    return result;
}

} // extern "C"
