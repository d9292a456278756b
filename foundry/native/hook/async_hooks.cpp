// Stream-ordered device memory. Inside a capture it becomes graph nodes and is the driver's; outside it comes from the
// arenas.
#include "../table/call.h"
#include "arena.h"
#include "arena_blocks.h"
#include "counters.h"
#include "memory.h"
#include "pool.h"
#include "ranges.h"
#include "state.h"

namespace foundry {
namespace {

using IsCapturing = decltype(&::cuStreamIsCapturing);
using AllocAsync = decltype(&::cuMemAllocAsync);
using FreeAsync = decltype(&::cuMemFreeAsync);

// Only a stream that the driver knows and that is not being captured is ours to serve; for all others the driver
// answers.
bool outside_capture(IsCapturing ask, CUstream stream) {
    if (!ask) return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    switch (ask(stream, &status)) {
    case CUDA_SUCCESS:
        return status == CU_STREAM_CAPTURE_STATUS_NONE;
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return false;
    default: // of the asking, not of the stream: no capture in the process is none on it
        return capture_depth() == 0;
    }
}

CUresult allocate(AllocAsync driver, IsCapturing ask, bool per_thread, CUdeviceptr *dptr, size_t size,
                  CUstream stream) {
    if (!driver) return driver_missing();
    uint32_t device;
    if (!dptr || !size || !arena_serves(&device)) {
        CUresult result = driver(dptr, size, stream);
        if (result == CUDA_SUCCESS && dptr) served_unplaced(*dptr, size, "cuMemAllocAsync");
        return result;
    }
    if (!outside_capture(ask, stream)) {
        CUresult result = driver(dptr, size, stream);
        if (result == CUDA_SUCCESS) count(counters.allocations_captured);
        return result;
    }
    pool_sweep();
    StreamKey key = stream_key(stream, per_thread);
    Block block{};
    if (pool_take(key, device, current_arena(), size, &block)) {
        count(counters.allocations_reused);
        arena_revive(&block, size, key.context, FOUNDRY_ORIGIN_ASYNC);
        *dptr = block.address;
        return CUDA_SUCCESS;
    }
    if (arena_allocate(device, current_arena(), size, FOUNDRY_ORIGIN_ASYNC, &block) == CUDA_SUCCESS) {
        *dptr = block.address;
        return CUDA_SUCCESS;
    }
    return served_instead(driver(dptr, size, stream), block, dptr, size, "cuMemAllocAsync");
}

CUresult give_back(FreeAsync driver, IsCapturing ask, bool per_thread, CUdeviceptr dptr, CUstream stream) {
    if (!driver) return driver_missing();
    if (arena_covers(dptr) && outside_capture(ask, stream)) {
        Block block;
        if (!arena_retire(dptr, &block)) return CUDA_ERROR_INVALID_VALUE;
        pool_keep(stream_key(stream, per_thread), block);
        return CUDA_SUCCESS;
    }
    CUresult result = driver(dptr, stream);
    Block stood_for;
    if (result == CUDA_SUCCESS && arena_stand_in_take(dptr, &stood_for)) {
        // The stream's next allocation is to find the place as if nothing had failed.
        if (arena_map(stood_for.device, stood_for.address, stood_for.taken) == CUDA_SUCCESS)
            pool_keep(stream_key(stream, per_thread), stood_for);
        else
            disarm("device memory could not be mapped, so later allocations could not be placed");
    }
    if (result == CUDA_SUCCESS && armed() && !range_remove(FOUNDRY_RANGE_POOL, dptr) &&
        !range_remove(FOUNDRY_RANGE_OUTSIDE, dptr))
        range_remove(FOUNDRY_RANGE_PEER, dptr);
    return result;
}

} // namespace
} // namespace foundry

using namespace foundry;

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    return allocate(driver_entry(real.cuMemAllocAsync), real.cuStreamIsCapturing, false, dptr, bytesize, hStream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    return allocate(driver_entry(real.cuMemAllocAsync_ptsz), real.cuStreamIsCapturing_ptsz, true, dptr, bytesize,
                    hStream);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    return give_back(driver_entry(real.cuMemFreeAsync), real.cuStreamIsCapturing, false, dptr, hStream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
    return give_back(driver_entry(real.cuMemFreeAsync_ptsz), real.cuStreamIsCapturing_ptsz, true, dptr, hStream);
}

// A pool of the program's own: its memory is where the driver puts it.
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
    CUresult result = DRIVER(cuMemAllocFromPoolAsync, dptr, bytesize, pool, hStream);
    if (result == CUDA_SUCCESS && armed() && dptr) range_add(FOUNDRY_RANGE_POOL, *dptr, bytesize);
    return result;
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
    CUresult result = DRIVER(cuMemAllocFromPoolAsync_ptsz, dptr, bytesize, pool, hStream);
    if (result == CUDA_SUCCESS && armed() && dptr) range_add(FOUNDRY_RANGE_POOL, *dptr, bytesize);
    return result;
}

} // extern "C"
