// What kernels and functions are, and what can be set on them.
#include "kernels.h"

namespace sim {
namespace {

constexpr int shared_opt_in = 227 * 1024;
constexpr int registers = 32;

CUresult get_attribute(int *value, CUfunction_attribute attribute, Kernel &kernel, int device) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    const KernelSettings &settings = kernel.settings[device];
    switch (static_cast<int>(attribute)) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_cast<int>(kernel.text.static_shared);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = registers;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = levers().major * 10 + levers().minor;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = kernel.max_dynamic_shared(device);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = settings.carveout;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = settings.required_cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = settings.non_portable_cluster;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = settings.cluster_scheduling;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult set_within(int *setting, int value, int least, int most) {
    if (value < least || value > most) return CUDA_ERROR_INVALID_VALUE;
    *setting = value;
    return CUDA_SUCCESS;
}

CUresult set_attribute(CUfunction_attribute attribute, int value, Kernel &kernel, int device) {
    KernelSettings &settings = kernel.settings[device];
    switch (static_cast<int>(attribute)) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return set_within(&settings.max_dynamic_shared, value, 0,
                          shared_opt_in - static_cast<int>(kernel.text.static_shared));
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return set_within(&settings.carveout, value, -1, 100);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        return set_within(&settings.required_cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH], value, 0,
                          16);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return set_within(&settings.non_portable_cluster, value, 0, 1);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return set_within(&settings.cluster_scheduling, value, 0, 2);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult parameter_info(const Kernel &kernel, std::size_t index, std::size_t *offset, std::size_t *size) {
    if (!offset || index >= kernel.text.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = kernel.text.parameters[index].offset;
    if (size) *size = kernel.text.parameters[index].size;
    return CUDA_SUCCESS;
}

CUresult known_kernel(CUkernel handle, Kernel **kernel) {
    *kernel = kernel_registry().kernels.find(handle);
    return *kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Functions of any context; a CUkernel in a CUfunction's place needs a current one.
CUresult known_function(CUfunction handle, std::shared_ptr<Function> *function) {
    *function = kernel_registry().functions.share(handle);
    if (*function) return CUDA_SUCCESS;
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    return resolve_function(handle, *context, function);
}

} // namespace

int Kernel::max_dynamic_shared(int device) {
    int set = settings[device].max_dynamic_shared;
    return set >= 0 ? set : static_cast<int>(text.max_dynamic_shared);
}

} // namespace sim

using sim::Function;
using sim::Kernel;

CUresult sim::cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!pFunc) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Function> function;
    SIM_TRY(kernel_function(kernel, *context, &function));
    *pFunc = function->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuKernelGetLibrary(CUlibrary *pLib, CUkernel handle) {
    Kernel *kernel = nullptr;
    SIM_TRY(known_kernel(handle, &kernel));
    if (!pLib) return CUDA_ERROR_INVALID_VALUE;
    *pLib = kernel->library;
    return CUDA_SUCCESS;
}

CUresult sim::cuKernelGetName(const char **name, CUkernel handle) {
    Kernel *kernel = nullptr;
    SIM_TRY(known_kernel(handle, &kernel));
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel->text.name.c_str();
    return CUDA_SUCCESS;
}

CUresult sim::cuKernelGetParamInfo(CUkernel handle, size_t paramIndex, size_t *paramOffset, size_t *paramSize) {
    Kernel *kernel = nullptr;
    SIM_TRY(known_kernel(handle, &kernel));
    return parameter_info(*kernel, paramIndex, paramOffset, paramSize);
}

CUresult sim::cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel handle, CUdevice dev) {
    Kernel *kernel = nullptr;
    SIM_TRY(known_kernel(handle, &kernel));
    return find_device(dev) ? get_attribute(pi, attrib, *kernel, dev) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim::cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel handle, CUdevice dev) {
    Kernel *kernel = nullptr;
    SIM_TRY(known_kernel(handle, &kernel));
    return find_device(dev) ? set_attribute(attrib, val, *kernel, dev) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim::cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice dev) {
    Kernel *kernel = nullptr;
    SIM_TRY(known_kernel(handle, &kernel));
    if (!find_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
    if (config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    kernel->settings[dev].cache = config;
    return CUDA_SUCCESS;
}

CUresult sim::cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
    std::shared_ptr<Function> function;
    SIM_TRY(known_function(hfunc, &function));
    return get_attribute(pi, attrib, *function->kernel, function->device);
}

CUresult sim::cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
    std::shared_ptr<Function> function;
    SIM_TRY(known_function(hfunc, &function));
    return set_attribute(attrib, value, *function->kernel, function->device);
}

CUresult sim::cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
    std::shared_ptr<Function> function;
    SIM_TRY(known_function(hfunc, &function));
    if (config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    function->kernel->settings[function->device].cache = config;
    return CUDA_SUCCESS;
}

CUresult sim::cuFuncGetModule(CUmodule *hmod, CUfunction hfunc) {
    std::shared_ptr<Function> function;
    SIM_TRY(known_function(hfunc, &function));
    if (!hmod) return CUDA_ERROR_INVALID_VALUE;
    *hmod = function->module;
    return CUDA_SUCCESS;
}

CUresult sim::cuFuncGetName(const char **name, CUfunction hfunc) {
    std::shared_ptr<Function> function;
    SIM_TRY(known_function(hfunc, &function));
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = function->kernel->text.name.c_str();
    return CUDA_SUCCESS;
}

CUresult sim::cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize) {
    std::shared_ptr<Function> function;
    SIM_TRY(known_function(func, &function));
    return parameter_info(*function->kernel, paramIndex, paramOffset, paramSize);
}

CUresult sim::cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle) {
    std::shared_ptr<Function> function;
    SIM_TRY(known_function(handle, &function));
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    *state = function->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

CUresult sim::cuFuncLoad(CUfunction handle) {
    std::shared_ptr<Function> function;
    SIM_TRY(known_function(handle, &function));
    function->loaded = true;
    return CUDA_SUCCESS;
}
