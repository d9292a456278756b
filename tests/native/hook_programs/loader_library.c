/* A library whose constructor looks the driver up: it runs while the loader's lock is held. */
#define _GNU_SOURCE
#include <dlfcn.h>

__attribute__((constructor)) static void load(void) {
    dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
}
