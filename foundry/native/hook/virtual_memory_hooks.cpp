// The program's own use of virtual memory: its mappings are seen, never moved.
#include "../table/call.h"
#include "pool.h"
#include "ranges.h"
#include "spool.h"
#include "state.h"

using namespace foundry;

extern "C" {

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
    return DRIVER(cuMemAddressReserve, ptr, size, alignment, addr, flags);
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    return DRIVER(cuMemAddressFree, ptr, size);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
    CUresult result = DRIVER(cuMemCreate, handle, size, prop, flags);
    // Memory that the hook keeps idle must not make a program fail that would have had it from the driver.
    if (result == CUDA_ERROR_OUT_OF_MEMORY && armed() && pool_trim())
        result = DRIVER(cuMemCreate, handle, size, prop, flags);
    return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    return DRIVER(cuMemRelease, handle);
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    CUresult result = DRIVER(cuMemMap, ptr, size, offset, handle, flags);
    if (result == CUDA_SUCCESS && armed()) range_add(FOUNDRY_RANGE_MAPPED, ptr, size);
    return result;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
    CUresult result = DRIVER(cuMemUnmap, ptr, size);
    if (result == CUDA_SUCCESS && armed()) range_remove_within(FOUNDRY_RANGE_MAPPED, ptr, size);
    return result;
}

} // extern "C"
