// Before main. Not in a constructor: the loader runs those of the program's libraries without a lock, and a thread that
// opens a library meanwhile would run some of them twice. Nor before the C library has noted the loader's end, which
// must come after the early start's.
#include <dlfcn.h>

#include "../table/real_dlsym.h"
#include "early.h"

namespace {

int (*programs_main)(int, char **, char **);

int begin_main(int count, char **arguments, char **environment) {
    foundry::program_begins();
    return programs_main(count, arguments, environment);
}

} // namespace

extern "C" __attribute__((visibility("default"))) int __libc_start_main(int (*main)(int, char **, char **), int count,
                                                                        char **arguments, void (*begin)(),
                                                                        void (*end)(), void (*loader_end)(),
                                                                        void *stack_end) {
    programs_main = main;
    auto *real =
        reinterpret_cast<decltype(&::__libc_start_main)>(foundry::real_dlsym()(RTLD_NEXT, "__libc_start_main"));
    return real(begin_main, count, arguments, begin, end, loader_end, stack_end);
}
