// Updating an exec: what is taken over, what is refused and why; a refusal changes nothing.
#include "sim_test.h"

static CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr address, unsigned value) {
    return {address, 0, value, 4, 4, 1};
}

int main() {
    CUcontext context = start();
    TestLibrary library;
    CUfunction append = library.function("append");
    CUdeviceptr list = device_memory(256), target = device_memory(256);
    Append one(list, 1), two(list, 2);

    auto build = [&](Append &work, unsigned value, bool linked, bool extra_node) {
        CUgraph graph = nullptr;
        CHECK(cuGraphCreate(&graph, 0));
        CUDA_KERNEL_NODE_PARAMS parameters = work.node(append);
        CUDA_MEMSET_NODE_PARAMS fill = fill_of(target, value);
        CUgraphNode first = nullptr, second = nullptr, third = nullptr;
        CHECK(cuGraphAddKernelNode_v2(&first, graph, nullptr, 0, &parameters));
        CHECK(cuGraphAddMemsetNode(&second, graph, &first, linked ? 1 : 0, &fill, context));
        if (extra_node) CHECK(cuGraphAddEmptyNode(&third, graph, nullptr, 0));
        return graph;
    };
    CUgraph graph = build(one, 5, true, false);
    CUgraphExec exec = instantiate(graph);
    CUgraphExecUpdateResultInfo info = {};
    auto update = [&](CUgraph with) { return cuGraphExecUpdate_v2(exec, with, &info); };

    CHECK(update(build(two, 6, true, false)));
    CHECK(cuGraphLaunch(exec, nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{2}) && word_at(target) == 6);

    const CUresult failure = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    EXPECT(failure, update(build(one, 7, true, true)));
    REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    EXPECT(failure, update(build(one, 7, false, false)));
    REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

    CUgraph other = nullptr;
    CHECK(cuGraphCreate(&other, 0));
    CUgraphNode empty = nullptr, fill_node = nullptr;
    CUDA_MEMSET_NODE_PARAMS fill = fill_of(target, 1);
    CHECK(cuGraphAddEmptyNode(&empty, other, nullptr, 0));
    CHECK(cuGraphAddMemsetNode(&fill_node, other, &empty, 1, &fill, context));
    EXPECT(failure, update(other));
    REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == empty);

    CUgraph clustered = build(one, 7, true, false);
    CUkernelNodeAttrValue cluster = {};
    cluster.clusterDim = {1, 1, 1};
    CHECK(cuGraphKernelNodeSetAttribute(nodes_of(clustered)[0], CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster));
    EXPECT(failure, update(clustered));
    REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);

    CUgraph tall = build(one, 7, true, false);
    CUDA_MEMSET_NODE_PARAMS tall_fill = {target, 32, 7, 4, 4, 2};
    CHECK(cuGraphMemsetNodeSetParams(nodes_of(tall)[1], &tall_fill));
    EXPECT(failure, update(tall));
    REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);

    CUcontext second_context = nullptr;
    CHECK(cuCtxCreate_v2(&second_context, 0, 0));
    CUfunction foreign = library.function("append");
    CUcontext popped = nullptr;
    CHECK(cuCtxPopCurrent_v2(&popped));
    CUgraph moved = nullptr;
    CHECK(cuGraphCreate(&moved, 0));
    CUgraphNode moved_kernel = nullptr;
    CUDA_KERNEL_NODE_PARAMS moved_params = one.node(foreign);
    CHECK(cuGraphAddKernelNode_v2(&moved_kernel, moved, nullptr, 0, &moved_params));
    CHECK(cuGraphAddMemsetNode(&fill_node, moved, &moved_kernel, 1, &fill, context));
    CUgraphNode error_node = nullptr;
    CUgraphExecUpdateResult reason = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    EXPECT(failure, cuGraphExecUpdate(exec, moved, &error_node, &reason));
    REQUIRE(reason == CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE && error_node == moved_kernel);

    CHECK(cuGraphLaunch(exec, nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{2, 2}) && word_at(target) == 6);
}
