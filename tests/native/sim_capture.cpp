// A capture that forks to a second stream and joins again: nothing runs, the graph has the right edges, a replay gives
// the result.
#include "sim_test.h"

static int host_calls = 0;
static void host(void *) {
    ++host_calls;
}

int main() {
    start();
    TestLibrary library;
    CUfunction append = library.function("append");
    CUdeviceptr list = device_memory(256), copy = device_memory(256);
    CUstream main_stream = new_stream(), side = new_stream();
    CUevent fork = new_event(), join = new_event();
    Append one(list, 1), two(list, 2), three(list, 3);
    std::uint32_t back[8] = {};

    CHECK(cuStreamBeginCapture_v2(main_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(main_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuMemsetD32Async(list, 0, 64, main_stream));
    CHECK(one.launch(append, main_stream));
    CHECK(cuEventRecord(fork, main_stream));
    CHECK(cuStreamWaitEvent(side, fork, 0));
    CHECK(two.launch(append, side));
    CHECK(cuLaunchHostFunc(main_stream, host, nullptr));
    CHECK(cuEventRecord(join, side));
    CHECK(cuStreamWaitEvent(main_stream, join, 0));
    CHECK(three.launch(append, main_stream));
    CHECK(cuMemcpyDtoDAsync_v2(copy, list, 32, main_stream));
    CHECK(cuMemcpyDtoHAsync_v2(back, copy, 32, main_stream));

    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK(cuStreamIsCapturing(side, &status));
    REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    cuuint64_t id = 0, side_id = 0;
    CUgraph during = nullptr, graph = nullptr;
    const CUgraphNode *dependencies = nullptr;
    const CUgraphEdgeData *data = nullptr;
    std::size_t count = 0;
    CHECK(cuStreamGetCaptureInfo_v3(main_stream, &status, &id, &during, &dependencies, &data, &count));
    REQUIRE(count == 1 && type_of(dependencies[0]) == CU_GRAPH_NODE_TYPE_MEMCPY);
    CHECK(cuStreamGetCaptureInfo_v2(side, &status, &side_id, nullptr, nullptr, nullptr));
    REQUIRE(id == side_id);
    CHECK(cuStreamEndCapture(main_stream, &graph));
    REQUIRE(graph == during);
    CHECK(cuStreamIsCapturing(side, &status));
    REQUIRE(status == CU_STREAM_CAPTURE_STATUS_NONE);
    REQUIRE(host_calls == 0 && list_at(list).empty());

    std::vector<CUgraphNode> nodes = nodes_of(graph);
    const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL,
                                     CU_GRAPH_NODE_TYPE_HOST,   CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
                                     CU_GRAPH_NODE_TYPE_MEMCPY};
    REQUIRE(nodes.size() == 7 && edge_count(graph) == 7);
    for (std::size_t index = 0; index < 7; ++index) REQUIRE(type_of(nodes[index]) == types[index]);
    std::size_t join_count = 0;
    CHECK(cuGraphNodeGetDependencies(nodes[4], nullptr, &join_count));
    REQUIRE(join_count == 2);

    CUgraphExec exec = instantiate(graph);
    CHECK(cuGraphDestroy(graph)); // the exec has its own copy
    for (int replay = 1; replay <= 3; ++replay) {
        CHECK(cuGraphLaunch(exec, main_stream));
        REQUIRE((list_at(list) == std::vector<std::uint32_t>{1, 2, 3}));
        REQUIRE(host_calls == replay && back[0] == 3 && back[3] == 3);
    }
    CHECK(cuGraphUpload(exec, main_stream));
    CHECK(cuGraphExecDestroy(exec));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, main_stream));
}
