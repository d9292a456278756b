// How the embedded engine asks the loader, and what a program has that is linked with -Wl,--wrap=dlsym. Compiled as
// ../hook/dlsym_shim.cpp is, for the same reason.
#include <dlfcn.h>
#include <string.h>

#include <atomic>
#include <initializer_list>

#include "../hook/doors.h"
#include "../table/real_dlsym.h"
#include "embed.h"

namespace foundry {
namespace {

std::atomic<DlsymFunction> found{nullptr};

DlsymFunction of_the_c_library() {
    for (const char *version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"})
        if (void *function = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<DlsymFunction>(function);
    return nullptr;
}

} // namespace

// That of a preloaded hook, where there is one. Not by name: the program's link may turn that into our own.
DlsymFunction real_dlsym() {
    DlsymFunction function = found.load(std::memory_order_relaxed);
    if (function) [[likely]]
        return function;
    function = of_the_c_library();
    if (void *first = function(RTLD_DEFAULT, "dlsym")) function = reinterpret_cast<DlsymFunction>(first);
    found.store(function, std::memory_order_relaxed);
    return function;
}

} // namespace foundry

extern "C" __attribute__((visibility("default"))) void *__wrap_dlsym(void *__restrict handle,
                                                                     const char *__restrict name) noexcept {
    if (name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z') [[unlikely]] {
        void *answer;
        if (foundry::embed::serves() && foundry::door_dlsym(handle, name, __builtin_return_address(0), &answer))
            return answer;
    } else if (handle == RTLD_DEFAULT && !strncmp(name, "foundry_", 8)) [[unlikely]] {
        if (void *function = foundry::embed::function_named(name)) return function;
    }
    return foundry::real_dlsym()(handle, name);
}
