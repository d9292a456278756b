/* Opens argv[1] with RTLD_DEEPBIND: its calls go past the hook, which must say so. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>

int main(int count, char **arguments) {
    if (count < 2) return 2;
    primary_context();
    void *engine = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
    if (!engine) return 3;
    int (*works)(void) = (int (*)(void))dlsym(engine, "engine_works");
    return works();
}
