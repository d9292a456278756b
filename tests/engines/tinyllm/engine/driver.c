#include "driver.h"

#include <dlfcn.h>

#define OLDEST_DRIVER 12000 /* the version of the functions that are asked for, and of the look-up itself */

typedef driver_result (*look_up)(const char *name, void **function, int version, uint64_t flags, int *status);

static void *find(void *library, look_up look, const char *name, const char *exported) {
    void *function = NULL;
    int status = 0;
    if (!look || look(name, &function, OLDEST_DRIVER, 0, &status) || !function) function = dlsym(library, exported);
    if (!function) fail("the driver has no %s", name);
    return function;
}

struct driver driver_open(void) {
    struct driver driver = {0};
    look_up look;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) fail("there is no CUDA driver: %s", dlerror());
    *(void **)&look = dlsym(library, "cuGetProcAddress_v2");
#define X(name, exported, parameters) *(void **)&driver.name = find(library, look, #name, #exported);
    DRIVER_FUNCTIONS(X)
#undef X
    driver.simulated = dlsym(library, "foundry_sim_version") != NULL;
    return driver;
}

void driver_check(const struct driver *driver, driver_result result, const char *what) {
    const char *name = NULL;
    if (!result) return;
    if (driver->cuGetErrorName(result, &name) || !name) name = "an unknown error";
    fail("%s: %s", what, name);
}
