// Modules: an image in one context.
#include "capture.h"
#include "kernels.h"
#include "regions.h"

namespace sim {
namespace {

CUresult load_module(CUmodule *module, const void *image) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(refuse_unsafe());
    std::shared_ptr<ImageFile> file;
    SIM_TRY(parse_image(image, &file));
    std::vector<std::shared_ptr<Kernel>> kernels;
    for (const KernelText &text : file->kernels) {
        kernels.push_back(std::make_shared<Kernel>());
        kernels.back()->text = text;
    }
    Module *made = nullptr;
    SIM_TRY(make_module(*context, file, kernels, nullptr, &made));
    *module = made->handle;
    return CUDA_SUCCESS;
}

} // namespace

KernelRegistry &kernel_registry() {
    static auto *registry = new KernelRegistry;
    return *registry;
}

Module::~Module() {
    for (const GlobalText &global : file->globals)
        if (instance)
            if (void *address = instance->symbol(global.name)) remove_region(reinterpret_cast<std::uint64_t>(address));
}

CUresult make_module(Context &context, const std::shared_ptr<ImageFile> &file,
                     const std::vector<std::shared_ptr<Kernel>> &kernels, CUlibrary library, Module **module) {
    auto made = std::make_shared<Module>();
    made->context = context.handle;
    made->device = context.device;
    made->library = library;
    made->file = file;
    SIM_TRY(ImageInstance::load(*file, &made->instance));
    for (const GlobalText &global : file->globals)
        if (!made->instance->symbol(global.name)) return CUDA_ERROR_INVALID_IMAGE;
    for (const std::shared_ptr<Kernel> &kernel : kernels) {
        auto function = std::make_shared<Function>();
        function->kernel = kernel;
        function->instance = made->instance;
        function->code = reinterpret_cast<foundry_sim_kernel>(made->instance->symbol(kernel->text.name));
        if (!function->code) return CUDA_ERROR_INVALID_IMAGE;
        function->context = context.handle;
        function->device = context.device;
        function->loaded = levers().eager;
        made->functions.push_back(function);
    }
    for (const GlobalText &global : file->globals) {
        Region region;
        region.base = reinterpret_cast<std::uint64_t>(made->instance->symbol(global.name));
        region.size = global.size;
        region.kind = RegionKind::global;
        region.device = context.device;
        add_region(region);
    }
    CUmodule handle = kernel_registry().modules.add(made);
    for (const std::shared_ptr<Function> &function : made->functions) {
        function->module = handle;
        kernel_registry().functions.add(function);
    }
    *module = made.get();
    return CUDA_SUCCESS;
}

void drop_module(CUmodule handle) {
    std::shared_ptr<Module> module = kernel_registry().modules.share(handle);
    if (!module) return;
    for (const std::shared_ptr<Function> &function : module->functions)
        kernel_registry().functions.remove(function->handle);
    kernel_registry().modules.remove(handle);
}

void clear_modules(Context &context) {
    std::vector<CUmodule> doomed;
    for (auto &[unused, module] : kernel_registry().modules)
        if (module->context == context.handle) doomed.push_back(module->handle);
    for (CUmodule module : doomed) drop_module(module);
    for (auto &[unused, library] : kernel_registry().libraries) library->modules.erase(context.handle);
}

CUresult module_global(const Module &module, const char *name, CUdeviceptr *address, std::size_t *bytes) {
    for (const GlobalText &global : module.file->globals)
        if (global.name == name) {
            if (address) *address = reinterpret_cast<CUdeviceptr>(module.instance->symbol(name));
            if (bytes) *bytes = global.size;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

} // namespace sim

using sim::kernel_registry;
using sim::Module;

CUresult sim::cuModuleLoad(CUmodule *module, const char *fname) {
    std::vector<unsigned char> bytes;
    SIM_TRY(read_file(fname, &bytes));
    return load_module(module, bytes.data());
}

CUresult sim::cuModuleLoadData(CUmodule *module, const void *image) {
    return load_module(module, image);
}

CUresult sim::cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int, CUjit_option *, void **) {
    return load_module(module, image);
}

CUresult sim::cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
    return load_module(module, fatCubin);
}

CUresult sim::cuModuleUnload(CUmodule hmod) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Module *module = kernel_registry().modules.find(hmod);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    if (module->library) return CUDA_ERROR_NOT_PERMITTED;
    SIM_TRY(refuse_unsafe());
    drop_module(hmod);
    return CUDA_SUCCESS;
}

CUresult sim::cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
    if (!hfunc || !name) return CUDA_ERROR_INVALID_VALUE;
    Module *module = kernel_registry().modules.find(hmod);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    for (const std::shared_ptr<Function> &function : module->functions)
        if (function->kernel->text.name == name) {
            *hfunc = function->handle;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult sim::cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name) {
    if (!name || (!dptr && !bytes)) return CUDA_ERROR_INVALID_VALUE;
    Module *module = kernel_registry().modules.find(hmod);
    return module ? module_global(*module, name, dptr, bytes) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim::cuModuleGetFunctionCount(unsigned int *count, CUmodule mod) {
    Module *module = kernel_registry().modules.find(mod);
    if (!count || !module) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(module->functions.size());
    return CUDA_SUCCESS;
}

CUresult sim::cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod) {
    Module *module = kernel_registry().modules.find(mod);
    if (!functions || !module) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned index = 0; index < numFunctions && index < module->functions.size(); ++index)
        functions[index] = module->functions[index]->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = levers().eager ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}
