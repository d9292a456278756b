/* Per-thread default streams (CUDA_API_PER_THREAD_DEFAULT_STREAM): two threads capture at once, thread-local. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "program.h"

#include <pthread.h>

static CUcontext context;
static CUdeviceptr memory[2];
static pthread_barrier_t together;

/* The second thread's graph is made after the first one's, so that each run tells the same. */
static void *work(void *number) {
    int second = *(int *)number;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr data = memory[second];
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    pthread_barrier_wait(&together);
    MUST(cuMemsetD32Async(data, 1, 4, CU_STREAM_PER_THREAD));
    pthread_barrier_wait(&together);
    MUST(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    if (second) pthread_barrier_wait(&together);
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, CU_STREAM_PER_THREAD));
    if (!second) pthread_barrier_wait(&together);
    return NULL;
}

int main(void) {
    context = primary_context();
    pthread_barrier_init(&together, NULL, 2);
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    for (int index = 0; index < 2; ++index) MUST(cuMemAlloc(&memory[index], 64));
    for (int index = 0; index < 2; ++index) pthread_create(&threads[index], NULL, work, &numbers[index]);
    for (int index = 0; index < 2; ++index) pthread_join(threads[index], NULL);
    CUdeviceptr after;
    MUST(cuMemAlloc(&after, 64));
    SAY("after %llx", after);
    return 0;
}
