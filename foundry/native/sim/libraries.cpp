// Libraries: an image in no context, with a module in each that uses it.
#include "kernels.h"

namespace sim {
namespace {

CUresult load_library(CUlibrary *library, const void *code) {
    if (!library || !code) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<Library>();
    SIM_TRY(parse_image(code, &made->file));
    for (const KernelText &text : made->file->kernels) {
        made->kernels.push_back(std::make_shared<Kernel>());
        made->kernels.back()->text = text;
    }
    *library = kernel_registry().libraries.add(made);
    for (const std::shared_ptr<Kernel> &kernel : made->kernels) {
        kernel->library = made->handle;
        kernel_registry().kernels.add(kernel);
    }
    Context *context = nullptr;
    Module *module = nullptr;
    // Lazily loaded, an image is made real by its first user. This finds a damaged one now, where a context allows it.
    if (current_context(&context) == CUDA_SUCCESS)
        if (CUresult result = library_module(*made, *context, &module); result != CUDA_SUCCESS) {
            sim::cuLibraryUnload(made->handle);
            return result;
        }
    return CUDA_SUCCESS;
}

CUresult known_library(CUlibrary handle, Library **library) {
    *library = kernel_registry().libraries.find(handle);
    return *library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

} // namespace

CUresult library_module(Library &library, Context &context, Module **module) {
    auto found = library.modules.find(context.handle);
    if (found != library.modules.end()) {
        *module = kernel_registry().modules.find(found->second);
        return CUDA_SUCCESS;
    }
    SIM_TRY(make_module(context, library.file, library.kernels, library.handle, module));
    library.modules[context.handle] = (*module)->handle;
    return CUDA_SUCCESS;
}

CUresult kernel_function(CUkernel handle, Context &context, std::shared_ptr<Function> *function) {
    Kernel *kernel = kernel_registry().kernels.find(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    Module *module = nullptr;
    SIM_TRY(library_module(*kernel_registry().libraries.find(kernel->library), context, &module));
    for (const std::shared_ptr<Function> &candidate : module->functions)
        if (candidate->kernel.get() == kernel) *function = candidate;
    return CUDA_SUCCESS;
}

CUresult resolve_function(CUfunction handle, Context &context, std::shared_ptr<Function> *function) {
    if (!handle) return CUDA_ERROR_INVALID_HANDLE;
    *function = kernel_registry().functions.share(handle);
    if (*function) return CUDA_SUCCESS;
    return kernel_function(reinterpret_cast<CUkernel>(handle), context, function);
}

} // namespace sim

using sim::kernel_registry;
using sim::Library;

CUresult sim::cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *, void **, unsigned int,
                                CUlibraryOption *, void **, unsigned int) {
    return load_library(library, code);
}

CUresult sim::cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *, void **, unsigned int,
                                    CUlibraryOption *, void **, unsigned int) {
    std::vector<unsigned char> bytes;
    SIM_TRY(read_file(fileName, &bytes));
    return load_library(library, bytes.data());
}

CUresult sim::cuLibraryUnload(CUlibrary handle) {
    std::shared_ptr<Library> library = kernel_registry().libraries.share(handle);
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    for (auto [context, module] : library->modules) drop_module(module);
    for (const std::shared_ptr<Kernel> &kernel : library->kernels) kernel_registry().kernels.remove(kernel->handle);
    kernel_registry().libraries.remove(handle);
    return CUDA_SUCCESS;
}

CUresult sim::cuLibraryGetKernel(CUkernel *pKernel, CUlibrary handle, const char *name) {
    Library *library = nullptr;
    SIM_TRY(known_library(handle, &library));
    if (!pKernel || !name) return CUDA_ERROR_INVALID_VALUE;
    for (const std::shared_ptr<Kernel> &kernel : library->kernels)
        if (kernel->text.name == name) {
            *pKernel = kernel->handle;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult sim::cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib) {
    Library *library = nullptr;
    SIM_TRY(known_library(lib, &library));
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(library->kernels.size());
    return CUDA_SUCCESS;
}

CUresult sim::cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib) {
    Library *library = nullptr;
    SIM_TRY(known_library(lib, &library));
    if (!kernels) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned index = 0; index < numKernels && index < library->kernels.size(); ++index)
        kernels[index] = library->kernels[index]->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuLibraryGetModule(CUmodule *pMod, CUlibrary handle) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Library *library = nullptr;
    SIM_TRY(known_library(handle, &library));
    if (!pMod) return CUDA_ERROR_INVALID_VALUE;
    Module *module = nullptr;
    SIM_TRY(library_module(*library, *context, &module));
    *pMod = module->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary handle, const char *name) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Library *library = nullptr;
    SIM_TRY(known_library(handle, &library));
    if (!name || (!dptr && !bytes)) return CUDA_ERROR_INVALID_VALUE;
    Module *module = nullptr;
    SIM_TRY(library_module(*library, *context, &module));
    return module_global(*module, name, dptr, bytes);
}

CUresult sim::cuLibraryGetManaged(CUdeviceptr *, size_t *, CUlibrary handle, const char *name) {
    Library *library = nullptr;
    SIM_TRY(known_library(handle, &library));
    return name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuLibraryGetUnifiedFunction(void **, CUlibrary handle, const char *symbol) {
    Library *library = nullptr;
    SIM_TRY(known_library(handle, &library));
    return symbol ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}
