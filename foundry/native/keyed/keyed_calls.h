/* What caches of graphs ask of the driver. Internal. */
#ifndef FOUNDRY_KEYED_CALLS_H
#define FOUNDRY_KEYED_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "foundry_keyed.h"

typedef struct keyed_update_result {
    int result;
    void *error_node, *error_from_node;
} keyed_update_result;

/* Result type, name as the driver exports it, parameters. */
#define KEYED_DRIVER_FUNCTIONS(X)                                                                                      \
    X(int, cuStreamBeginCapture_v2, (void *stream, int mode))                                                          \
    X(int, cuStreamEndCapture, (void *stream, void **graph))                                                           \
    X(int, cuGraphInstantiateWithFlags, (void **exec, void *graph, uint64_t flags))                                    \
    X(int, cuGraphExecUpdate_v2, (void *exec, void *graph, keyed_update_result *result))                               \
    X(int, cuGraphLaunch, (void *exec, void *stream))                                                                  \
    X(int, cuGraphDestroy, (void *graph))                                                                              \
    X(int, cuGraphExecDestroy, (void *exec))                                                                           \
    X(int, cuStreamSynchronize, (void *stream))                                                                        \
    X(int, cuCtxSynchronize, (void))                                                                                   \
    X(int, cuMemGetInfo_v2, (size_t *free, size_t *total))                                                             \
    X(int, cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))                                                   \
    X(int, cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))                                             \
    X(int, cuGetErrorName, (int result, const char **name))

typedef struct keyed_calls {
#define X(result, name, parameters) result(*name) parameters;
    KEYED_DRIVER_FUNCTIONS(X)
#undef X
    int (*last_runtime_error)(void); /* cudaGetLastError, where the program has a runtime; else NULL */
} keyed_calls;

/* NULL, or what the driver lacks. */
const char *keyed_calls_open(keyed_calls *calls);
/* The runtime keeps the last error of a thread, and its next caller would be told of ours. */
void keyed_clear_error(const keyed_calls *calls);
/* "FUNCTION: NAME OF THE ERROR" */
void keyed_tell(const keyed_calls *calls, const char *function, int result, char *text, size_t size);

#endif
