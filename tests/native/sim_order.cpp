// Nodes without an edge between them run in an order that differs by seed; edges are always kept. Prints the order.
#include "sim_test.h"

int main() {
    start();
    TestLibrary library;
    CUfunction append = library.function("append");
    CUdeviceptr list = device_memory(256);
    CUgraph graph = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CUgraphNode last = nullptr;
    for (std::uint32_t index = 0; index < 8; ++index) {
        Append work(list, index);
        CUDA_KERNEL_NODE_PARAMS parameters = work.node(append);
        CUgraphNode node = nullptr;
        CHECK(cuGraphAddKernelNode_v2(&node, graph, &last, index % 2, &parameters)); // pairs: even before odd
        last = node;
    }
    CHECK(cuGraphLaunch(instantiate(graph), nullptr));
    std::vector<std::uint32_t> order = list_at(list);
    REQUIRE(order.size() == 8);
    std::size_t place[8];
    for (std::size_t index = 0; index < 8; ++index) place[order[index]] = index;
    for (std::size_t even = 0; even < 8; even += 2) REQUIRE(place[even] < place[even + 1]);
    for (std::uint32_t value : order) std::printf("%u ", value);
    std::printf("graph %p list %llx\n", static_cast<void *>(graph), list);
}
