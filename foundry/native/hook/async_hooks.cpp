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
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return ask && ask(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult allocate(AllocAsync driver, IsCapturing ask, bool per_thread, CUdeviceptr *dptr, size_t size,
                  CUstream stream) {
    if (!driver) return driver_missing();
    uint32_t device;
    if (!dptr || !size || !arena_serves(&device)) return driver(dptr, size, stream);
    if (!outside_capture(ask, stream)) {
        CUresult result = driver(dptr, size, stream);
        if (result == CUDA_SUCCESS) count(counters.allocations_captured);
        return result;
    }
    pool_sweep();
    StreamKey key = stream_key(stream, per_thread);
    Block block;
    if (pool_take(key, device, current_arena(), size, &block)) {
        count(counters.allocations_reused);
        arena_revive(&block, size, key.context, FOUNDRY_ORIGIN_ASYNC);
        *dptr = block.address;
        return CUDA_SUCCESS;
    }
    CUresult result = arena_allocate(device, current_arena(), size, FOUNDRY_ORIGIN_ASYNC, &block);
    if (result == CUDA_SUCCESS) {
        *dptr = block.address;
    } else if (result == CUDA_ERROR_NOT_SUPPORTED) {
        result = driver(dptr, size, stream);
        if (result == CUDA_SUCCESS) served_outside(*dptr, size, "cuMemAllocAsync");
    }
    return result;
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
    if (result == CUDA_SUCCESS && armed() && !range_remove(FOUNDRY_RANGE_POOL, dptr))
        range_remove(FOUNDRY_RANGE_OUTSIDE, dptr);
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
