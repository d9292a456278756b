/* The driver functions that the programs here call, and how a result that is not 0 ends them. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        int must_result = (int)(call);                                                                                 \
        if (must_result) {                                                                                             \
            fprintf(stderr, "%s gives %d\n", #call, must_result);                                                      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* name, exported symbol */
#define FUNCTIONS(X)                                                                                                   \
    X(cuInit, cuInit)                                                                                                  \
    X(cuDeviceGet, cuDeviceGet)                                                                                        \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)                                                              \
    X(cuCtxSetCurrent, cuCtxSetCurrent)                                                                                \
    X(cuModuleLoadData, cuModuleLoadData)                                                                              \
    X(cuModuleGetFunction, cuModuleGetFunction)                                                                        \
    X(cuStreamCreate, cuStreamCreate)                                                                                  \
    X(cuStreamSynchronize, cuStreamSynchronize)                                                                        \
    X(cuStreamBeginCapture, cuStreamBeginCapture_v2)                                                                   \
    X(cuStreamEndCapture, cuStreamEndCapture)                                                                          \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags)                                                        \
    X(cuGraphDestroy, cuGraphDestroy)                                                                                  \
    X(cuLaunchKernel, cuLaunchKernel)                                                                                  \
    X(cuGraphLaunch, cuGraphLaunch)                                                                                    \
    X(cuMemAlloc, cuMemAlloc_v2)                                                                                       \
    X(cuMemFree, cuMemFree_v2)
