// Parameters of kernel nodes are copied by the kernel's layout, from pointers or from a buffer; attributes have
// defaults and limits.
#include "sim_test.h"

int main() {
    CUcontext context = start();
    TestLibrary library;
    CUkernel kernel = library.kernel("add_constant");
    CUfunction function = library.function("add_constant");
    CUdeviceptr data = device_memory(64);
    std::uint8_t amount = 3;
    std::uint32_t scale = 5;
    std::uint64_t count = 4;
    void *arguments[] = {&data, &amount, &scale, &count};
    CUDA_KERNEL_NODE_PARAMS parameters = {};
    parameters.kern = kernel;
    parameters.ctx = context;
    parameters.gridDimX = 2;
    parameters.gridDimY = parameters.gridDimZ = parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = arguments;
    CUgraph graph = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CUgraphNode by_kernel = nullptr, by_buffer = nullptr;
    CHECK(cuGraphAddKernelNode_v2(&by_kernel, graph, nullptr, 0, &parameters));
    amount = 99; // the node has its own copy
    CUDA_KERNEL_NODE_PARAMS back = {};
    CHECK(cuGraphKernelNodeGetParams_v2(by_kernel, &back));
    REQUIRE(back.func == function && back.kern == kernel && back.ctx == context && back.gridDimX == 2 && !back.extra);
    REQUIRE(*static_cast<CUdeviceptr *>(back.kernelParams[0]) == data &&
            *static_cast<std::uint8_t *>(back.kernelParams[1]) == 3 &&
            *static_cast<std::uint64_t *>(back.kernelParams[3]) == 4);
    CUDA_KERNEL_NODE_PARAMS_v1 old = {};
    CHECK(cuGraphKernelNodeGetParams(by_kernel, &old));
    REQUIRE(old.func == function);

    alignas(8) unsigned char buffer[24] = {};
    std::memcpy(buffer, &data, 8);
    buffer[8] = 7;
    std::memcpy(buffer + 12, &scale, 4);
    std::memcpy(buffer + 16, &count, 8);
    std::size_t size = sizeof buffer;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CUDA_KERNEL_NODE_PARAMS_v1 through = {function, 1, 1, 1, 1, 1, 1, 0, nullptr, extra};
    CHECK(cuGraphAddKernelNode(&by_buffer, graph, &by_kernel, 1, &through));
    CHECK(cuGraphKernelNodeGetParams_v2(by_buffer, &back));
    REQUIRE(!back.kernelParams && back.extra && back.extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER);
    REQUIRE(std::memcmp(back.extra[1], buffer, sizeof buffer) == 0 &&
            *static_cast<std::size_t *>(back.extra[3]) == sizeof buffer);
    CUgraphNode copied = nullptr;
    CHECK(cuGraphAddKernelNode_v2(&copied, graph, &by_buffer, 1, &back)); // what was read can be built again
    size = 20;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&copied, graph, nullptr, 0, &through));
    CHECK(cuGraphLaunch(instantiate(graph), nullptr));
    REQUIRE(word_at(data) == 3 * 5 + 2 * 7 * 5 && word_at(data + 12) == 85 && word_at(data + 16) == 0);

    const bool valid[16] = {false, true, true, false, true,  true, false, false,
                            true,  true, true, false, false, true, true,  false};
    for (int id = 0; id < 16; ++id) {
        CUkernelNodeAttrValue value;
        std::memset(&value, 0xee, sizeof value);
        EXPECT(valid[id] ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
               cuGraphKernelNodeGetAttribute(by_kernel, static_cast<CUkernelNodeAttrID>(id), &value));
        unsigned char expected[64] = {};
        if (id == 5) expected[0] = 1;
        if (id == 9) expected[1] = 1;
        REQUIRE(!valid[id] || std::memcmp(&value, expected, sizeof expected) == 0);
    }
    CUkernelNodeAttrValue value = {};
    value.clusterDim = {2, 1, 1};
    CHECK(cuGraphKernelNodeSetAttribute(by_kernel, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    CHECK(cuGraphKernelNodeCopyAttributes(by_buffer, by_kernel)); // whose grid is 1
    CUgraphExec exec = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {};
    EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuGraphInstantiateWithParams(&exec, graph, &how));
    REQUIRE(how.hErrNode_out == by_buffer);
    value.cooperative = 2;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(by_kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphKernelNodeSetAttribute(by_kernel, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, &value));

    CUgraph greedy = nullptr;
    CHECK(cuGraphCreate(&greedy, 0));
    parameters.sharedMemBytes = 100 * 1024;
    amount = 0;
    CHECK(cuGraphAddKernelNode_v2(&copied, greedy, nullptr, 0, &parameters));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&exec, greedy, 0));
    CHECK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024, kernel, 0));
    CHECK(cuGraphLaunch(instantiate(greedy), nullptr));
}
