/* An engine linked with the driver; what opens it so that its calls go past the hook must be told. */
#include "program.h"

int engine_works(void) {
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr data;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&data, 4096));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuMemsetD32Async(data, 1, 4, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    return 0;
}
