// Modules: a load may be answered with the restore engine's own copy of the same image.
#include "../restore/engine.h"
#include "../table/call.h"
#include "counters.h"
#include "images.h"
#include "ranges.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

CUcontext current_context() {
    CUcontext context = nullptr;
    if (real.cuCtxGetCurrent) real.cuCtxGetCurrent(&context);
    return context;
}

template <typename Driver> CUresult load_module(const ImageLoad &load, CUmodule *module, Driver driver) {
    CUcontext context = current_context();
    bool asks = mode() == FOUNDRY_MODE_RESTORE && load.known() && context;
    bool handed_over = asks && restore::module_handover(load.key, context, module);
    CUresult result = handed_over ? CUDA_SUCCESS : driver();
    if (asks && !handed_over) {
        if (result == CUDA_SUCCESS)
            restore::module_loaded(load.key, context, *module);
        else
            restore::load_failed(load.key);
    }
    if (result != CUDA_SUCCESS) return result;
    count(counters.module_loads);
    if (handed_over) count(counters.images_handed_over);
    image_loaded(reinterpret_cast<uint64_t>(*module), FOUNDRY_API_MODULE, load, context, handed_over);
    return result;
}

} // namespace
} // namespace foundry

using namespace foundry;

extern "C" {

CUresult cuModuleLoad(CUmodule *module, const char *fname) {
    if (!armed() || !module || !fname) return DRIVER(cuModuleLoad, module, fname);
    ImageLoad load;
    load.from_file(fname, nullptr, nullptr, 0);
    return load_module(load, module, [&] { return DRIVER(cuModuleLoad, module, fname); });
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    if (!armed() || !module || !image) return DRIVER(cuModuleLoadData, module, image);
    ImageLoad load;
    load.from_memory(image, nullptr, nullptr, 0);
    return load_module(load, module, [&] { return DRIVER(cuModuleLoadData, module, image); });
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
                            void **optionValues) {
    if (!armed() || !module || !image)
        return DRIVER(cuModuleLoadDataEx, module, image, numOptions, options, optionValues);
    ImageLoad load;
    load.from_memory(image, options, optionValues, numOptions);
    return load_module(load, module,
                       [&] { return DRIVER(cuModuleLoadDataEx, module, image, numOptions, options, optionValues); });
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
    if (!armed() || !module || !fatCubin) return DRIVER(cuModuleLoadFatBinary, module, fatCubin);
    ImageLoad load;
    load.from_memory(fatCubin, nullptr, nullptr, 0);
    return load_module(load, module, [&] { return DRIVER(cuModuleLoadFatBinary, module, fatCubin); });
}

CUresult cuModuleUnload(CUmodule hmod) {
    // Forgotten before the driver may give the handle to another thread's load.
    bool reference = mode() == FOUNDRY_MODE_RESTORE && restore::module_unload(hmod);
    if (armed() && hmod) image_unloaded(reinterpret_cast<uint64_t>(hmod));
    return reference ? CUDA_SUCCESS : DRIVER(cuModuleUnload, hmod);
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
    CUresult result = DRIVER(cuModuleGetFunction, hfunc, hmod, name);
    if (result == CUDA_SUCCESS && armed() && hfunc) kernel_seen(*hfunc, reinterpret_cast<uint64_t>(hmod), name);
    return result;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod) {
    CUresult result = DRIVER(cuModuleEnumerateFunctions, functions, numFunctions, mod);
    if (result != CUDA_SUCCESS || !armed() || !functions) return result;
    unsigned known = 0;
    if (!real.cuModuleGetFunctionCount || real.cuModuleGetFunctionCount(&known, mod) != CUDA_SUCCESS) return result;
    for (unsigned index = 0; index < numFunctions && index < known; ++index)
        kernel_seen(functions[index], reinterpret_cast<uint64_t>(mod), nullptr);
    return result;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name) {
    // Either may be NULL for the program, but both are needed to tell the range.
    CUdeviceptr address = 0;
    size_t size = 0;
    CUresult result = DRIVER(cuModuleGetGlobal_v2, dptr ? dptr : &address, bytes ? bytes : &size, hmod, name);
    if (result == CUDA_SUCCESS && armed() && name)
        range_add(FOUNDRY_RANGE_GLOBAL, dptr ? *dptr : address, bytes ? *bytes : size, image_resolve(hmod), name);
    return result;
}

} // extern "C"
