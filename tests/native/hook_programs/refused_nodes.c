/* Nodes that no restore can rebuild: the graph works as ever, and the recording says why it cannot come back. */
#include "program.h"

static int called;
static void host_function(void *user) {
    called += *(int *)user;
}

int main(void) {
    primary_context();
    int one = 1;
    CUgraph graph;
    CUgraphNode node, second;
    CUgraphExec exec;
    CUstream stream;
    CUdeviceptr data;
    MUST(cuMemAlloc(&data, 64));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuGraphCreate(&graph, 0));
    CUDA_HOST_NODE_PARAMS host = {host_function, &one};
    MUST(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
    CUDA_MEMSET_NODE_PARAMS set = {data, 0, 7, 4, 4, 1};
    CUcontext context;
    MUST(cuCtxGetCurrent(&context));
    MUST(cuGraphAddMemsetNode(&second, graph, &node, 1, &set, context));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    SAY("called %d", called);
    return 0;
}
