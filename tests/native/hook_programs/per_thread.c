/* Per-thread default streams (CUDA_API_PER_THREAD_DEFAULT_STREAM): two threads capture at once, thread-local. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "program.h"

#include <pthread.h>

static CUcontext context;
static pthread_barrier_t together;

static void *work(void *unused) {
    (void)unused;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr data;
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&data, 64));
    MUST(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    pthread_barrier_wait(&together);
    MUST(cuMemsetD32Async(data, 1, 4, CU_STREAM_PER_THREAD));
    pthread_barrier_wait(&together);
    MUST(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, CU_STREAM_PER_THREAD));
    return NULL;
}

int main(void) {
    context = primary_context();
    pthread_barrier_init(&together, NULL, 2);
    pthread_t threads[2];
    for (int index = 0; index < 2; ++index) pthread_create(&threads[index], NULL, work, NULL);
    for (int index = 0; index < 2; ++index) pthread_join(threads[index], NULL);
    CUdeviceptr after;
    MUST(cuMemAlloc(&after, 64));
    SAY("after %llx", after);
    return 0;
}
