/* A side stream that is never joined, an end without a begin, an end on another thread's terms: the driver's own
 * answers. */
#include "program.h"

int main(void) {
    primary_context();
    CUstream stream, side;
    CUevent event;
    CUgraph graph = NULL;
    CUdeviceptr data, other;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc(&data, 64));
    SAY("no-begin %d", cuStreamEndCapture(stream, &graph));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamWaitEvent(side, event, 0));
    MUST(cuMemsetD32Async(data, 1, 4, side));
    SAY("unjoined %d", cuStreamEndCapture(stream, &graph));
    MUST(cuMemAlloc(&other, 64));
    SAY("arena-after %lld", (long long)(other - data));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuStreamDestroy(stream));
    MUST(cuMemAlloc(&other, 64));
    SAY("arena-after-destroy %lld", (long long)(other - data));
    return 0;
}
