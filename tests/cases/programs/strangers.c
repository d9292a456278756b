/* Asks the driver for functions that nobody knows yet, by every door, and works with it; with an argument, after a
 * plain first call. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>

int main(int count, char **arguments) {
    int (*newest)(int) = NULL, (*future)(int) = NULL;
    void *found = NULL;
    if (count > 1) MUST(cuInit((unsigned)atoi(arguments[1])));
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&future = dlsym(driver, "cuFutureThing");
    *(void **)&newest = dlsym(driver, "cuMemAlloc_v9");
    SAY("dlsym %d %d", future ? future(1) : -1, newest ? newest(2) : -1);
    CUdriverProcAddressQueryResult status;
    MUST(cuGetProcAddress("cuFutureThing", &found, 13000, 0, &status));
    *(void **)&future = found;
    SAY("entry %d", future(3));
    CUdeviceptr data;
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUcontext context = primary_context();
    MUST(cuMemAlloc(&data, 64));
    MUST(cuGraphCreate(&graph, 0));
    CUDA_MEMSET_NODE_PARAMS set = {data, 0, 7, 4, 4, 1};
    MUST(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    SAY("works");
    return 0;
}
