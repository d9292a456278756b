/* Graphs that record an event and wait for it: one that the program keeps, one that it destroys before the graph runs,
 * one that it destroys too late. Each graph goes on working. */
#include "program.h"

static CUgraphExec graph_with(CUstream stream, CUevent event, CUdeviceptr data, unsigned value) {
    CUgraph graph;
    CUgraphExec exec;
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemsetD32Async(data, value, 4, stream));
    MUST(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
    MUST(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphDestroy(graph));
    return exec;
}

static void run(CUgraphExec exec, CUstream stream, CUdeviceptr data) {
    unsigned value;
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(&value, data, sizeof value));
    SAY("value %u", value);
}

int main(void) {
    primary_context();
    CUstream stream;
    CUdeviceptr data;
    CUevent kept, gone, late;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&data, 64));
    MUST(cuEventCreate(&kept, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&gone, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&late, CU_EVENT_DISABLE_TIMING));
    CUgraphExec first = graph_with(stream, kept, data, 1);
    CUgraphExec second = graph_with(stream, gone, data, 2);
    CUgraphExec third = graph_with(stream, late, data, 3);
    MUST(cuEventDestroy(gone));
    run(first, stream, data);
    run(second, stream, data);
    run(third, stream, data);
    MUST(cuEventSynchronize(late));
    MUST(cuEventDestroy(late));
    SAY("twice %d", cuEventDestroy(late));
    return 0;
}
