// Every kind of node can be built, read back, changed, cloned and run.
#include "sim_test.h"

static void bump(void *number) {
    ++*static_cast<int *>(number);
}

int main() {
    CUcontext context = start();
    TestLibrary library;
    CUfunction append = library.function("append");
    CUdeviceptr list = device_memory(256), target = device_memory(256);
    Append work(list, 4);
    CUgraph graph = nullptr, child = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CHECK(cuGraphCreate(&child, 0));
    CUgraphNode kernel, fill, copy, host, empty, inner, outer, record, wait, allocate, release;
    CUDA_KERNEL_NODE_PARAMS kernel_params = work.node(append);
    CHECK(cuGraphAddKernelNode_v2(&inner, child, nullptr, 0, &kernel_params));

    CUDA_MEMSET_NODE_PARAMS fill_params = {target, 0, 0x0a0b, 2, 8, 1};
    CHECK(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &fill_params, context));
    CHECK(cuGraphAddKernelNode_v2(&kernel, graph, &fill, 1, &kernel_params));
    CUDA_MEMCPY3D copy_params = {};
    copy_params.srcMemoryType = copy_params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy_params.srcDevice = target;
    copy_params.dstDevice = target + 64;
    copy_params.WidthInBytes = 16;
    copy_params.Height = copy_params.Depth = 1;
    CHECK(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &copy_params, context));
    int calls = 0;
    CUDA_HOST_NODE_PARAMS host_params = {bump, &calls};
    CHECK(cuGraphAddHostNode(&host, graph, &copy, 1, &host_params));
    CHECK(cuGraphAddEmptyNode(&empty, graph, &host, 1));
    CHECK(cuGraphAddChildGraphNode(&outer, graph, &empty, 1, child));
    CUevent event = new_event();
    CHECK(cuGraphAddEventRecordNode(&record, graph, &outer, 1, event));
    CHECK(cuGraphAddEventWaitNode(&wait, graph, &record, 1, event));
    REQUIRE(edge_count(graph) == 7);

    CUDA_MEMSET_NODE_PARAMS fill_back = {};
    CUDA_MEMCPY3D copy_back = {};
    CUDA_HOST_NODE_PARAMS host_back = {};
    CHECK(cuGraphMemsetNodeGetParams(fill, &fill_back));
    CHECK(cuGraphMemcpyNodeGetParams(copy, &copy_back));
    CHECK(cuGraphHostNodeGetParams(host, &host_back));
    REQUIRE(std::memcmp(&fill_back, &fill_params, sizeof fill_back) == 0);
    REQUIRE(std::memcmp(&copy_back, &copy_params, sizeof copy_back) == 0);
    REQUIRE(host_back.fn == bump && host_back.userData == &calls);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeGetParams(copy, &fill_back)); // another kind

    CUgraphNode refused = nullptr;
    fill_back.dst = 0x400000000000;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&refused, graph, nullptr, 0, &fill_back, context));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeSetParams(fill, &fill_back));
    copy_back.dstDevice = 0x400000000000;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&refused, graph, nullptr, 0, &copy_back, context));
    kernel_params.blockDimX = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode_v2(&refused, graph, nullptr, 0, &kernel_params));
    kernel_params.blockDimX = 1;

    CUgraph clone = nullptr;
    CUgraphNode twin = nullptr;
    CHECK(cuGraphClone(&clone, graph));
    CHECK(cuGraphNodeFindInClone(&twin, kernel, clone));
    REQUIRE(twin != kernel && type_of(twin) == CU_GRAPH_NODE_TYPE_KERNEL);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&twin, inner, clone));
    REQUIRE(edge_count(clone) == 7);
    CUgraph child_of_clone = nullptr, child_of_graph = nullptr;
    CHECK(cuGraphNodeFindInClone(&twin, outer, clone));
    CHECK(cuGraphChildGraphNodeGetGraph(twin, &child_of_clone));
    CHECK(cuGraphChildGraphNodeGetGraph(outer, &child_of_graph));
    REQUIRE(child_of_clone != child_of_graph && child_of_graph != child);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(child_of_graph)); // its parent's
    CHECK(cuGraphDestroy(child));

    Append other(list, 5);
    CUDA_KERNEL_NODE_PARAMS changed = other.node(append);
    CHECK(cuGraphKernelNodeSetParams_v2(kernel, &changed));
    CHECK(cuGraphLaunch(instantiate(graph), nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{5, 4}) && calls == 1 && word_at(target + 64) == 0x0a0b0a0b);
    CHECK(cuEventQuery(event));
    CHECK(cuGraphLaunch(instantiate(clone), nullptr));
    REQUIRE((list_at(list) == std::vector<std::uint32_t>{5, 4, 4, 4}) && calls == 2);

    CUgraph memory = nullptr;
    CHECK(cuGraphCreate(&memory, 0));
    CUDA_MEM_ALLOC_NODE_PARAMS allocation = {};
    allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    allocation.bytesize = 1024;
    CHECK(cuGraphAddMemAllocNode(&allocate, memory, nullptr, 0, &allocation));
    REQUIRE(allocation.dptr != 0);
    CHECK(cuGraphAddMemFreeNode(&release, memory, &allocate, 1, allocation.dptr));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(allocate));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&refused, graph, nullptr, 0, memory));
    CUgraphExec exec = instantiate(memory);
    CHECK(cuGraphLaunch(exec, nullptr));
    CHECK(cuGraphLaunch(exec, nullptr));
}
