/* Shared by the programs of the hook's tests: they say what they see on stdout, one fact a line, and end with 1 where a
 * call failed that must not. */
#ifndef FOUNDRY_TESTS_PROGRAM_H
#define FOUNDRY_TESTS_PROGRAM_H

#include <cuda.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        CUresult must_result = (call);                                                                                 \
        if (must_result != CUDA_SUCCESS) {                                                                             \
            fprintf(stderr, "%s:%d: %s gives %d\n", __FILE__, __LINE__, #call, must_result);                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define SAY(...)                                                                                                       \
    do {                                                                                                               \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
        fflush(stdout);                                                                                                \
    } while (0)

#ifndef PROGRAM_WITHOUT_DRIVER /* as one that is not linked with it must say */
__attribute__((unused)) static CUcontext primary_context(void) {
    CUdevice device;
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    return context;
}
#endif

#endif
