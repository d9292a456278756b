/* The functions of the CUDA driver that the engine calls, found at run time: no toolkit and no link dependency. */
#ifndef TINYLLM_DRIVER_H
#define TINYLLM_DRIVER_H

#include "common.h"

typedef int driver_result; /* 0 = success */

/* Name as cuGetProcAddress knows it, name as the library exports it, parameters. */
#define DRIVER_FUNCTIONS(X)                                                                                            \
    X(cuInit, cuInit, (unsigned flags))                                                                                \
    X(cuGetErrorName, cuGetErrorName, (driver_result result, const char **name))                                       \
    X(cuDeviceGet, cuDeviceGet, (int *device, int ordinal))                                                            \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (void **context, int device))                                \
    X(cuCtxSetCurrent, cuCtxSetCurrent, (void *context))                                                               \
    X(cuStreamCreate, cuStreamCreate, (void **stream, unsigned flags))                                                 \
    X(cuStreamSynchronize, cuStreamSynchronize, (void *stream))                                                        \
    X(cuModuleLoadData, cuModuleLoadData, (void **module, const void *image))                                          \
    X(cuModuleGetFunction, cuModuleGetFunction, (void **function, void *module, const char *name))                     \
    X(cuMemAlloc, cuMemAlloc_v2, (uint64_t *address, size_t bytes))                                                    \
    X(cuMemFree, cuMemFree_v2, (uint64_t address))                                                                     \
    X(cuMemsetD8Async, cuMemsetD8Async, (uint64_t address, unsigned char value, size_t bytes, void *stream))           \
    X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream))            \
    X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream))                  \
    X(cuLaunchKernel, cuLaunchKernel,                                                                                  \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,          \
       unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, void **extra))

struct driver {
#define X(name, exported, parameters) driver_result(*name) parameters;
    DRIVER_FUNCTIONS(X)
#undef X
    bool simulated;
};

/* Opens libcuda.so.1; ends the program with the reason where that cannot be. */
struct driver driver_open(void);
/* Ends the program if the result is an error. */
void driver_check(const struct driver *driver, driver_result result, const char *what);

#define DRIVE(driver, name, ...) driver_check(driver, (driver)->name(__VA_ARGS__), #name)

#endif
