// Host memory that the device can reach: seen, so that a pointer to it can be told from noise.
#include "../table/call.h"
#include "ranges.h"
#include "spool.h"
#include "state.h"

using namespace foundry;

extern "C" {

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) {
    CUresult result = DRIVER(cuMemAllocHost_v2, pp, bytesize);
    if (result == CUDA_SUCCESS && armed() && pp)
        range_add(FOUNDRY_RANGE_PINNED, reinterpret_cast<uint64_t>(*pp), bytesize);
    return result;
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
    CUresult result = DRIVER(cuMemHostAlloc, pp, bytesize, Flags);
    if (result == CUDA_SUCCESS && armed() && pp)
        range_add(FOUNDRY_RANGE_PINNED, reinterpret_cast<uint64_t>(*pp), bytesize);
    return result;
}

CUresult cuMemFreeHost(void *p) {
    CUresult result = DRIVER(cuMemFreeHost, p);
    if (result == CUDA_SUCCESS && armed()) range_remove(FOUNDRY_RANGE_PINNED, reinterpret_cast<uint64_t>(p));
    return result;
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
    CUresult result = DRIVER(cuMemHostRegister_v2, p, bytesize, Flags);
    if (result == CUDA_SUCCESS && armed()) range_add(FOUNDRY_RANGE_REGISTERED, reinterpret_cast<uint64_t>(p), bytesize);
    return result;
}

CUresult cuMemHostUnregister(void *p) {
    CUresult result = DRIVER(cuMemHostUnregister, p);
    if (result == CUDA_SUCCESS && armed()) range_remove(FOUNDRY_RANGE_REGISTERED, reinterpret_cast<uint64_t>(p));
    return result;
}

} // extern "C"
