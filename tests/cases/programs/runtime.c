/* What a CUDA runtime does of version argv[1]: it opens the driver, finds the one function that finds all others, asks
 * it for itself too, and works with what it got. Built into a program, or with -DLIBRARY into a library that a program
 * opens. */
#define _GNU_SOURCE
#define PROGRAM_WITHOUT_DRIVER
#include "program.h"

#include <dlfcn.h>

typedef CUresult (*Finder)(const char *, void **, int, cuuint64_t);
typedef CUresult (*LatestFinder)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static int version;
static Finder finder;
static LatestFinder latest;

static void *entry(const char *name, cuuint64_t flags) {
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    CUresult result = latest ? latest(name, &found, version, flags, &status) : finder(name, &found, version, flags);
    if (result || !found) {
        fprintf(stderr, "no %s: %d\n", name, result);
        exit(1);
    }
    return found;
}

#define CALL(name, type, ...) MUST(((CUresult(*) type)entry(#name, 0))(__VA_ARGS__))

int runtime_works(const char *of_version) {
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr data;
    version = atoi(of_version);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    /* A runtime that is newer than 12.0 knows the newer form, and an old one gets the old form from it. */
    if (version >= 12000)
        latest = (LatestFinder)dlsym(driver, "cuGetProcAddress_v2");
    else
        finder = (Finder)dlsym(driver, "cuGetProcAddress");
    for (int round = 0; round < 3; ++round) {
        void *again = entry("cuGetProcAddress", 0);
        if (version >= 12000)
            latest = (LatestFinder)again;
        else
            finder = (Finder)again;
    }
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGet, (CUdevice *, int), &device, 0);
    CALL(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice), &context, device);
    CALL(cuCtxSetCurrent, (CUcontext), context);
    CALL(cuMemAlloc, (CUdeviceptr *, size_t), &data, 1000);
    CALL(cuStreamCreate, (CUstream *, unsigned), &stream, CU_STREAM_NON_BLOCKING);
    CALL(cuStreamBeginCapture, (CUstream, CUstreamCaptureMode), stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CALL(cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream), data, 5, 250, stream);
    CALL(cuStreamEndCapture, (CUstream, CUgraph *), stream, &graph);
    if (version >= 11040)
        CALL(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long), &exec, graph, 0);
    else
        CALL(cuGraphInstantiate, (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t), &exec, graph, NULL, NULL, 0);
    CALL(cuGraphLaunch, (CUgraphExec, CUstream), exec, stream);
    CALL(cuStreamSynchronize, (CUstream), stream);
    CALL(cuGraphExecDestroy, (CUgraphExec), exec);
    CALL(cuGraphDestroy, (CUgraph), graph);
    CALL(cuMemFree, (CUdeviceptr), data);
    SAY("works");
    return 0;
}

#ifndef LIBRARY
int main(int count, char **arguments) {
    if (count < 2) return 2;
    if (count < 3) return runtime_works(arguments[1]);
    void *library = dlopen(arguments[2], RTLD_NOW);
    int (*works)(const char *) = (int (*)(const char *))dlsym(library, "runtime_works");
    return works ? works(arguments[1]) : 3;
}
#endif
