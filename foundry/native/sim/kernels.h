// Libraries hold kernels, modules hold functions; a function is a kernel in one context.
#pragma once

#include "devices.h"
#include "image.h"

namespace sim {

struct Library;
struct Module;

// What can be set on a kernel; -1 where the default depends on the kernel.
struct KernelSettings {
    int max_dynamic_shared = -1;
    int carveout = -1;
    int required_cluster[3] = {0, 0, 0};
    int non_portable_cluster = 0;
    int cluster_scheduling = 0;
    CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
};

struct Kernel {
    CUkernel handle = nullptr; // null for those of a plain module
    CUlibrary library = nullptr;
    KernelText text;
    std::map<int, KernelSettings> settings; // by device
    int max_dynamic_shared(int device);
};

struct Function {
    CUfunction handle = nullptr;
    std::shared_ptr<Kernel> kernel;
    std::shared_ptr<ImageInstance> instance;
    foundry_sim_kernel code = nullptr;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    int device = 0;
    bool loaded = false;
};

struct Module {
    CUmodule handle = nullptr;
    CUcontext context = nullptr;
    int device = 0;
    CUlibrary library = nullptr; // null for a plain module
    std::shared_ptr<ImageFile> file;
    std::shared_ptr<ImageInstance> instance;
    std::vector<std::shared_ptr<Function>> functions; // in the image's order
    ~Module();
};

struct Library {
    CUlibrary handle = nullptr;
    std::shared_ptr<ImageFile> file;
    std::vector<std::shared_ptr<Kernel>> kernels; // in the image's order
    std::map<CUcontext, CUmodule> modules;
};

struct KernelRegistry {
    Table<CUlibrary, Library> libraries;
    Table<CUmodule, Module> modules;
    Table<CUkernel, Kernel> kernels;
    Table<CUfunction, Function> functions;
};
KernelRegistry &kernel_registry();

// Makes the module of an image in a context; a library's kernels are shared, a plain module's are its own.
CUresult make_module(Context &context, const std::shared_ptr<ImageFile> &file,
                     const std::vector<std::shared_ptr<Kernel>> &kernels, CUlibrary library, Module **module);
void drop_module(CUmodule module);
CUresult library_module(Library &library, Context &context, Module **module);
CUresult module_global(const Module &module, const char *name, CUdeviceptr *address, std::size_t *bytes);

// The function that a handle names: a CUfunction, or a CUkernel in its place, as launches accept it.
CUresult resolve_function(CUfunction handle, Context &context, std::shared_ptr<Function> *function);
CUresult kernel_function(CUkernel handle, Context &context, std::shared_ptr<Function> *function);

} // namespace sim
