// Edges: adding, the driver's bulk behaviour, refusals, removal, cycles.
#include "sim_test.h"

int main() {
    start();
    TestLibrary library;
    CUfunction append = library.function("append");
    CUdeviceptr list = device_memory(256);
    Append work(list, 1);
    CUDA_KERNEL_NODE_PARAMS parameters = work.node(append);
    CUgraph graph = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CUgraphNode node[4];
    for (CUgraphNode &one : node) CHECK(cuGraphAddKernelNode_v2(&one, graph, nullptr, 0, &parameters));
    CUgraphEdgeData programmatic = {
        CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
    CUgraphEdgeData data[] = {programmatic, {}};
    CUgraphNode from[] = {node[0], node[1]}, to[] = {node[1], node[2]};
    CHECK(cuGraphAddDependencies_v2(graph, from, to, data, 2));
    CUgraphNode got = nullptr;
    CUgraphEdgeData got_data = {};
    std::size_t count = 1;
    CHECK(cuGraphNodeGetDependencies_v2(node[2], &got, &got_data, &count));
    REQUIRE(got == node[1] && got_data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC); // as the first edge of the call
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, from, to, 1));      // exists
    CHECK(cuGraphRemoveDependencies_v2(graph, from + 1, to + 1, nullptr, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph, from + 1, to + 1, 1));
    CHECK(cuGraphAddDependencies_v2(graph, from + 1, to + 1, data + 1, 1));
    count = 1;
    CHECK(cuGraphNodeGetDependencies_v2(node[2], &got, &got_data, &count));
    REQUIRE(got_data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);

    CUgraphNode empty = nullptr;
    CHECK(cuGraphAddEmptyNode(&empty, graph, &node[2], 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphAddDependencies_v2(graph, &node[3], &empty, &programmatic, 1)); // not a kernel
    programmatic.reserved[0] = 1;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies_v2(graph, &node[2], &node[3], &programmatic, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &node[2], &node[2], 1));

    CUgraphNode roots[8];
    count = 8;
    CHECK(cuGraphGetRootNodes(graph, roots, &count));
    REQUIRE(count == 2 && roots[0] == node[0] && roots[1] == node[3] && roots[2] == nullptr);
    CHECK(cuGraphDestroyNode(node[1]));
    REQUIRE(nodes_of(graph).size() == 4 && edge_count(graph) == 1);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(node[1]));

    CHECK(cuGraphAddDependencies(graph, &empty, &node[2], 1)); // a cycle shows at instantiation
    CUgraphExec exec = nullptr;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&exec, graph, 0));
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {};
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &how));
    REQUIRE(how.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
}
