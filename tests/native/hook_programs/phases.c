/* Which arena serves: outside captures, inside scratch phases, inside captures, on any thread. Also frees inside a
 * capture. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>

static CUcontext context;

static void allocate(const char *name, CUdeviceptr *address) {
    MUST(cuMemAlloc(address, 4096));
    SAY("%s %llx", name, *address);
}

static void *on_thread(void *address) {
    MUST(cuCtxSetCurrent(context));
    allocate("thread", address);
    return NULL;
}

int main(void) {
    context = primary_context();
    int (*begin)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "foundry_scratch_begin");
    int (*end)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "foundry_scratch_end");
    CUdeviceptr a, b, c, d, e, f;
    CUstream stream;
    CUgraph graph;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    allocate("main", &a);
    if (begin) begin("warm-up");
    allocate("scratch", &b);
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    allocate("graph", &c);
    if (end) end();
    allocate("graph-2", &d);
    pthread_t thread;
    pthread_create(&thread, NULL, on_thread, &e);
    pthread_join(thread, NULL);
    MUST(cuMemsetD32Async(c, 1, 4, stream));
    MUST(cuMemFree(a));
    MUST(cuMemFree(d));
    CUstreamCaptureStatus status;
    MUST(cuStreamIsCapturing(stream, &status));
    SAY("status %d", status);
    MUST(cuStreamEndCapture(stream, &graph));
    allocate("main-again", &f);
    return 0;
}
