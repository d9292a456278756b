// The public dlsym. Compiled with -O2 and without sanitizers in every build: the last call must be a jump, because the
// C library finds the meaning of RTLD_NEXT from the return address.
#include <dlfcn.h>

#include <atomic>
#include <initializer_list>

#include "../table/real_dlsym.h"
#include "doors.h"

namespace foundry {
namespace {

std::atomic<DlsymFunction> found{nullptr};

} // namespace

DlsymFunction real_dlsym() {
    DlsymFunction function = found.load(std::memory_order_relaxed);
    if (function) [[likely]]
        return function;
    for (const char *version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
        function = reinterpret_cast<DlsymFunction>(dlvsym(RTLD_NEXT, "dlsym", version));
        if (function) break;
    }
    found.store(function, std::memory_order_relaxed);
    return function;
}

} // namespace foundry

extern "C" __attribute__((visibility("default"))) void *dlsym(void *__restrict handle,
                                                              const char *__restrict name) noexcept {
    if (name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z') [[unlikely]] {
        void *answer;
        if (foundry::door_dlsym(handle, name, __builtin_return_address(0), &answer)) return answer;
    }
    return foundry::real_dlsym()(handle, name);
}
