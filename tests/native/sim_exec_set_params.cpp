// Single nodes of an exec: changed, switched off and on; the source graph stays as it was. Flags; user objects.
#include "sim_test.h"

static void gone(void *flag) {
    *static_cast<bool *>(flag) = true;
}

int main() {
    CUcontext context = start();
    TestLibrary library;
    CUfunction append = library.function("append");
    CUdeviceptr list = device_memory(256), target = device_memory(256);
    Append one(list, 1), two(list, 2), inside(list, 9);
    CUgraph graph = nullptr, child = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CHECK(cuGraphCreate(&child, 0));
    CUgraphNode kernel, fill, empty, outer, inner;
    CUDA_KERNEL_NODE_PARAMS parameters = one.node(append), inside_params = inside.node(append);
    CHECK(cuGraphAddKernelNode_v2(&inner, child, nullptr, 0, &inside_params));
    CHECK(cuGraphAddKernelNode_v2(&kernel, graph, nullptr, 0, &parameters));
    CUDA_MEMSET_NODE_PARAMS fill_params = {target, 0, 1, 4, 1, 1};
    CHECK(cuGraphAddMemsetNode(&fill, graph, &kernel, 1, &fill_params, context));
    CHECK(cuGraphAddEmptyNode(&empty, graph, &fill, 1));
    CHECK(cuGraphAddChildGraphNode(&outer, graph, &empty, 1, child));
    bool destroyed = false;
    CUuserObject object = nullptr;
    CHECK(cuUserObjectCreate(&object, &destroyed, gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CHECK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiateWithFlags(
        &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
    cuuint64_t flags = 0;
    CHECK(cuGraphExecGetFlags(exec, &flags));
    REQUIRE(flags == CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);

    CUDA_KERNEL_NODE_PARAMS changed = two.node(append);
    CHECK(cuGraphExecKernelNodeSetParams_v2(exec, kernel, &changed));
    fill_params.value = 3;
    CHECK(cuGraphExecMemsetNodeSetParams(exec, fill, &fill_params, context));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(exec, kernel, &fill_params, context));
    changed.blockDimX = 2000;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams_v2(exec, kernel, &changed));
    CHECK(cuGraphLaunch(exec, nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{2, 9}) && word_at(target) == 3);
    CUDA_KERNEL_NODE_PARAMS back = {};
    CHECK(cuGraphKernelNodeGetParams_v2(kernel, &back));
    REQUIRE(*static_cast<std::uint32_t *>(back.kernelParams[1]) == 1);

    CHECK(cuGraphNodeSetEnabled(exec, kernel, 0));
    unsigned enabled = 1;
    CHECK(cuGraphNodeGetEnabled(exec, kernel, &enabled));
    REQUIRE(enabled == 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, empty, 0));
    CHECK(cuGraphLaunch(exec, nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{2, 9, 9}));
    CHECK(cuGraphNodeSetEnabled(exec, kernel, 1));
    CHECK(cuGraphLaunch(exec, nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{2, 9, 9, 2, 9}));

    CHECK(cuGraphDestroy(graph));
    REQUIRE(!destroyed);
    CHECK(cuGraphExecDestroy(exec));
    REQUIRE(destroyed);
}
