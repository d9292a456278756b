// Capturing into a graph that exists, changing dependencies, external events, memory, and a launched graph as a child.
#include "sim_test.h"

int main() {
    start();
    TestLibrary library;
    CUfunction append = library.function("append");
    CUdeviceptr list = device_memory(256);
    Append one(list, 1), two(list, 2);
    CUstream stream = new_stream();
    CUgraph graph = nullptr, ended = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CUgraphNode first = nullptr;
    CUDA_KERNEL_NODE_PARAMS parameters = one.node(append);
    CHECK(cuGraphAddKernelNode_v2(&first, graph, nullptr, 0, &parameters));
    CHECK(cuStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(two.launch(append, stream));
    CHECK(cuStreamUpdateCaptureDependencies_v2(stream, nullptr, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    CHECK(cuStreamUpdateCaptureDependencies_v2(stream, &first, nullptr, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    CUevent event = new_event();
    CHECK(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
    CHECK(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL));
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuGraphDestroy(graph));
    CHECK(cuStreamEndCapture(stream, &ended));
    REQUIRE(ended == graph);
    std::vector<CUgraphNode> nodes = nodes_of(graph);
    REQUIRE(nodes.size() == 4 && nodes[0] == first && type_of(nodes[2]) == CU_GRAPH_NODE_TYPE_EVENT_RECORD &&
            type_of(nodes[3]) == CU_GRAPH_NODE_TYPE_WAIT_EVENT && edge_count(graph) == 3);
    CUevent back = nullptr;
    CHECK(cuGraphEventRecordNodeGetEvent(nodes[2], &back));
    REQUIRE(back == event);
    CUgraphExec exec = instantiate(graph);

    CUdeviceptr temporary = 0, afterwards = 0;
    CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuMemAllocAsync(&temporary, 4096, stream));
    CHECK(cuMemsetD32Async(temporary, 9, 16, stream));
    CHECK(cuMemcpyDtoDAsync_v2(list + 128, temporary, 4, stream));
    CHECK(cuMemFreeAsync(temporary, stream));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuMemAllocAsync(&afterwards, 64, stream));
    CHECK(cuStreamEndCapture(stream, &graph));
    nodes = nodes_of(graph);
    const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEMSET,
                                     CU_GRAPH_NODE_TYPE_MEMCPY,    CU_GRAPH_NODE_TYPE_MEM_FREE,
                                     CU_GRAPH_NODE_TYPE_GRAPH,     CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    REQUIRE(nodes.size() == 6);
    for (std::size_t index = 0; index < 6; ++index) REQUIRE(type_of(nodes[index]) == types[index]);
    CUDA_MEM_ALLOC_NODE_PARAMS allocation = {};
    CHECK(cuGraphMemAllocNodeGetParams(nodes[0], &allocation));
    REQUIRE(allocation.dptr == temporary && allocation.bytesize == 4096);
    CUdeviceptr freed = 0;
    CHECK(cuGraphMemFreeNodeGetParams(nodes[3], &freed));
    REQUIRE(freed == temporary);
    CUgraph child = nullptr;
    CHECK(cuGraphChildGraphNodeGetGraph(nodes[4], &child));
    REQUIRE(nodes_of(child).size() == 4);
    CUgraphExec outer = instantiate(graph);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphLaunch(outer, stream));
    REQUIRE(word_at(list + 128) == 9 && list_at(list).size() == 2);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(outer, stream)); // `afterwards` is still allocated
    CHECK(cuMemFreeAsync(afterwards, stream));
    CHECK(cuGraphLaunch(outer, stream));
    CUgraph clone = nullptr;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
}
