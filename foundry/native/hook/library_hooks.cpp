// Libraries: a load may be answered with the restore engine's own copy of the same image.
#include "../restore/engine.h"
#include "../table/call.h"
#include "counters.h"
#include "images.h"
#include "ranges.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

// A library that takes host functions of the program with it is nobody else's.
bool shareable(const CUlibraryOption *options, unsigned count) {
    for (unsigned index = 0; options && index < count; ++index)
        if (options[index] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE) return false;
    return true;
}

template <typename Driver>
CUresult load_library(const ImageLoad &load, bool may_share, CUlibrary *library, Driver driver) {
    bool asks = mode() == FOUNDRY_MODE_RESTORE && load.known() && may_share;
    bool handed_over = asks && restore::library_handover(load.key, library);
    CUresult result = handed_over ? CUDA_SUCCESS : driver();
    if (asks && !handed_over) {
        if (result == CUDA_SUCCESS)
            restore::library_loaded(load.key, *library);
        else
            restore::load_failed(load.key);
    }
    if (result != CUDA_SUCCESS) return result;
    count(counters.library_loads);
    if (handed_over) count(counters.images_handed_over);
    image_loaded(reinterpret_cast<uint64_t>(*library), FOUNDRY_API_LIBRARY, load, nullptr, handed_over);
    return result;
}

} // namespace
} // namespace foundry

using namespace foundry;

extern "C" {

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
                           unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                           unsigned int numLibraryOptions) {
    auto driver = [&] {
        return DRIVER(cuLibraryLoadData, library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
                      libraryOptionValues, numLibraryOptions);
    };
    if (!armed() || !library || !code) return driver();
    ImageLoad load;
    load.from_memory(code, jitOptions, jitOptionsValues, numJitOptions);
    return load_library(load, shareable(libraryOptions, numLibraryOptions), library, driver);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                               void **libraryOptionValues, unsigned int numLibraryOptions) {
    auto driver = [&] {
        return DRIVER(cuLibraryLoadFromFile, library, fileName, jitOptions, jitOptionsValues, numJitOptions,
                      libraryOptions, libraryOptionValues, numLibraryOptions);
    };
    if (!armed() || !library || !fileName) return driver();
    ImageLoad load;
    load.from_file(fileName, jitOptions, jitOptionsValues, numJitOptions);
    return load_library(load, shareable(libraryOptions, numLibraryOptions), library, driver);
}

CUresult cuLibraryUnload(CUlibrary library) {
    // Forgotten before the driver may give the handle to another thread's load.
    bool reference = mode() == FOUNDRY_MODE_RESTORE && restore::library_unload(library);
    if (armed() && library) image_unloaded(reinterpret_cast<uint64_t>(library));
    return reference ? CUDA_SUCCESS : DRIVER(cuLibraryUnload, library);
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name) {
    CUresult result = DRIVER(cuLibraryGetKernel, pKernel, library, name);
    if (result == CUDA_SUCCESS && armed() && pKernel) kernel_seen(*pKernel, reinterpret_cast<uint64_t>(library), name);
    return result;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib) {
    CUresult result = DRIVER(cuLibraryEnumerateKernels, kernels, numKernels, lib);
    if (result != CUDA_SUCCESS || !armed() || !kernels) return result;
    unsigned known = 0;
    if (!real.cuLibraryGetKernelCount || real.cuLibraryGetKernelCount(&known, lib) != CUDA_SUCCESS) return result;
    for (unsigned index = 0; index < numKernels && index < known; ++index)
        kernel_seen(kernels[index], reinterpret_cast<uint64_t>(lib), nullptr);
    return result;
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library) {
    CUresult result = DRIVER(cuLibraryGetModule, pMod, library);
    if (result == CUDA_SUCCESS && armed() && pMod) alias_seen(*pMod, library);
    return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
    CUdeviceptr address = 0;
    size_t size = 0;
    CUresult result = DRIVER(cuLibraryGetGlobal, dptr ? dptr : &address, bytes ? bytes : &size, library, name);
    if (result == CUDA_SUCCESS && armed() && name)
        range_add(FOUNDRY_RANGE_GLOBAL, dptr ? *dptr : address, bytes ? *bytes : size,
                  reinterpret_cast<uint64_t>(library), name);
    return result;
}

CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
    CUdeviceptr address = 0;
    size_t size = 0;
    CUresult result = DRIVER(cuLibraryGetManaged, dptr ? dptr : &address, bytes ? bytes : &size, library, name);
    if (result == CUDA_SUCCESS && armed() && name)
        range_add(FOUNDRY_RANGE_MANAGED, dptr ? *dptr : address, bytes ? *bytes : size,
                  reinterpret_cast<uint64_t>(library), name);
    return result;
}

} // extern "C"
