#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "keyed_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* A cast from a pointer to data to one to a function is not C89. */
static void *found_as(void *found, void *function) {
    memcpy(function, &found, sizeof found);
    return found;
}

const char *keyed_calls_open(keyed_calls *calls) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    memset(calls, 0, sizeof *calls);
    if (!driver) return "there is no CUDA driver";
#define X(result, name, parameters)                                                                                    \
    if (!found_as(dlsym(driver, #name), &calls->name)) return "the driver has no " #name;
    KEYED_DRIVER_FUNCTIONS(X)
#undef X
    found_as(dlsym(RTLD_DEFAULT, "cudaGetLastError"), &calls->last_runtime_error);
    return NULL;
}

void keyed_clear_error(const keyed_calls *calls) {
    if (calls->last_runtime_error) calls->last_runtime_error();
}

void keyed_tell(const keyed_calls *calls, const char *function, int result, char *text, size_t size) {
    const char *name = NULL;
    if (calls->cuGetErrorName(result, &name) || !name)
        snprintf(text, size, "%s: error %d", function, result);
    else
        snprintf(text, size, "%s: %s", function, name);
}
