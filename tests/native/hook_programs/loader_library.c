/* A library whose constructor uses the driver: it runs while the loader's lock is held. */
#define _GNU_SOURCE
#include <dlfcn.h>

__attribute__((constructor)) static void load(void) {
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "cuInit");
    if (init) init(0);
}
