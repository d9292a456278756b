// Kernel handles and attribute setters. The attributes themselves are read when a graph is recorded.
#include "../table/call.h"
#include "counters.h"
#include "images.h"
#include "state.h"

using namespace foundry;

extern "C" {

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) {
    CUresult result = DRIVER(cuKernelGetFunction, pFunc, kernel);
    if (result == CUDA_SUCCESS && armed() && pFunc) alias_seen(*pFunc, kernel);
    return result;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
    count(counters.kernel_attribute_calls);
    return DRIVER(cuKernelSetAttribute, attrib, val, kernel, dev);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
    count(counters.kernel_attribute_calls);
    return DRIVER(cuKernelSetCacheConfig, kernel, config, dev);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
    count(counters.kernel_attribute_calls);
    return DRIVER(cuFuncSetAttribute, hfunc, attrib, value);
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
    count(counters.kernel_attribute_calls);
    return DRIVER(cuFuncSetCacheConfig, hfunc, config);
}

} // extern "C"
