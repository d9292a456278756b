// Programmatic launches in a capture make programmatic edges, which getters without edge data refuse to hide.
#include "sim_test.h"

int main() {
    start();
    TestLibrary library;
    CUfunction append = library.function("append");
    CUdeviceptr list = device_memory(256);
    Append one(list, 1), two(list, 2);
    CUstream stream = new_stream(), side = new_stream();
    CUlaunchAttribute serial = {};
    serial.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    serial.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {};
    config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &serial;
    config.numAttrs = 1;
    CUgraph graph = nullptr;
    CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuMemsetD32Async(list, 0, 4, stream));
    CHECK(cuLaunchKernelEx(&config, append, one.arguments, nullptr)); // after a memset: an ordinary edge
    CHECK(cuLaunchKernelEx(&config, append, two.arguments, nullptr));
    CHECK(cuStreamEndCapture(stream, &graph));
    CUgraphNode from[2], to[2];
    CUgraphEdgeData data[2];
    std::size_t count = 2;
    CHECK(cuGraphGetEdges_v2(graph, from, to, data, &count));
    std::vector<CUgraphNode> nodes = nodes_of(graph);
    REQUIRE(count == 2);
    for (int edge = 0; edge < 2; ++edge) {
        bool programmatic = from[edge] == nodes[1];
        REQUIRE(data[edge].type ==
                (programmatic ? CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC : CU_GRAPH_DEPENDENCY_TYPE_DEFAULT));
        REQUIRE(data[edge].from_port == (programmatic ? CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC : 0));
    }
    EXPECT(CUDA_ERROR_LOSSY_QUERY, cuGraphGetEdges(graph, from, to, &count));
    count = 1;
    EXPECT(CUDA_ERROR_LOSSY_QUERY, cuGraphNodeGetDependencies(nodes[2], from, &count));
    EXPECT(CUDA_ERROR_LOSSY_QUERY, cuGraphNodeGetDependentNodes(nodes[1], from, &count));
    CHECK(cuGraphNodeGetDependencies(nodes[1], from, &count));
    CHECK(cuGraphNodeGetDependencies_v2(nodes[2], from, data, &count));
    REQUIRE(data[0].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    CHECK(cuGraphLaunch(instantiate(graph), stream));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{1, 2}));

    // A programmatic event carries its edge to another stream.
    CUevent event = new_event(), back = new_event();
    CUlaunchAttribute record = {};
    record.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    record.value.programmaticEvent.event = event;
    config.attrs = &record;
    CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuLaunchKernelEx(&config, append, one.arguments, nullptr));
    CHECK(cuStreamWaitEvent(side, event, 0));
    CHECK(two.launch(append, side));
    CHECK(cuEventRecord(back, side));
    CHECK(cuStreamWaitEvent(stream, back, 0));
    CHECK(cuStreamEndCapture(stream, &graph));
    count = 2;
    CHECK(cuGraphGetEdges_v2(graph, from, to, data, &count));
    REQUIRE(count == 1 && data[0].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
}
