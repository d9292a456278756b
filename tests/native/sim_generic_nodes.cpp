// cuGraphAddNode with each kind, edge data, cuGraphNodeSetParams, and conditional nodes, which run what their default
// value says.
#include "sim_test.h"

int main() {
    CUcontext context = start();
    TestLibrary library;
    CUdeviceptr list = device_memory(256);
    Append one(list, 1), two(list, 2);
    CUgraph graph = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CUgraphNode fill, first, second;
    CUgraphNodeParams parameters = {};
    parameters.type = CU_GRAPH_NODE_TYPE_MEMSET;
    parameters.memset = {list, 0, 0, 4, 8, 1, context};
    CHECK(cuGraphAddNode(&fill, graph, nullptr, 0, &parameters));
    CUgraphNodeParams kernel = {};
    kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
    kernel.kernel.kern = library.kernel("append");
    kernel.kernel.gridDimX = kernel.kernel.gridDimY = kernel.kernel.gridDimZ = 1;
    kernel.kernel.blockDimX = kernel.kernel.blockDimY = kernel.kernel.blockDimZ = 1;
    kernel.kernel.kernelParams = one.arguments;
    CHECK(cuGraphAddNode_v2(&first, graph, &fill, nullptr, 1, &kernel));
    CUgraphEdgeData programmatic = {
        CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
    CHECK(cuGraphAddNode_v2(&second, graph, &first, &programmatic, 1, &kernel));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&second, graph, &fill, &programmatic, 1, &kernel));
    kernel.kernel.kernelParams = two.arguments;
    CHECK(cuGraphNodeSetParams(second, &kernel));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(second, &parameters)); // another kind
    CUgraphExec exec = instantiate(graph);
    CHECK(cuGraphLaunch(exec, nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{1, 2}));
    CHECK(cuGraphExecNodeSetParams(exec, first, &kernel));
    CHECK(cuGraphLaunch(exec, nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{2, 2}));

    CUgraphConditionalHandle handle = 0;
    CHECK(cuGraphConditionalHandleCreate(&handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNodeParams conditional = {};
    conditional.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    conditional.conditional = {handle, CU_GRAPH_COND_TYPE_IF, 1, nullptr, context};
    CUgraphNode node = nullptr;
    CHECK(cuGraphAddNode_v2(&node, graph, &second, nullptr, 1, &conditional));
    REQUIRE(conditional.conditional.phGraph_out);
    CUgraph body = conditional.conditional.phGraph_out[0];
    CUgraphNode in_body = nullptr;
    CHECK(cuGraphAddNode_v2(&in_body, body, nullptr, nullptr, 0, &kernel));
    REQUIRE(type_of(node) == CU_GRAPH_NODE_TYPE_CONDITIONAL);
    exec = instantiate(graph);
    CHECK(cuGraphLaunch(exec, nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{1, 2, 2}));

    CUgraphConditionalHandle endless = 0;
    CHECK(cuGraphConditionalHandleCreate(&endless, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    conditional.conditional = {endless, CU_GRAPH_COND_TYPE_WHILE, 1, nullptr, context};
    CHECK(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &conditional));
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {};
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithParams(&exec, graph, &how));
    REQUIRE(how.hErrNode_out == node);
    CHECK(cuGraphDestroy(graph));
}
