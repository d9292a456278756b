// An update compares the order of each node's dependencies: a capture's is its stream's own work first, then what it
// waited for. Clones keep it, nodes have it as they were added, and edges come behind what is there.
#include "sim_test.h"

#include <algorithm>

static CUcontext context;
static CUfunction append;
static CUdeviceptr list;

static CUgraph captured(std::uint32_t value) {
    static CUstream stream = new_stream(), side = new_stream();
    static CUevent fork = new_event(), join = new_event();
    Append work(list, value);
    CUgraph graph = nullptr;
    CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(work.launch(append, stream));
    CHECK(cuEventRecord(fork, stream));
    CHECK(cuStreamWaitEvent(side, fork, 0));
    CHECK(work.launch(append, side));
    CHECK(work.launch(append, stream));
    CHECK(cuEventRecord(join, side));
    CHECK(cuStreamWaitEvent(stream, join, 0));
    CHECK(work.launch(append, stream));
    CHECK(cuStreamEndCapture(stream, &graph));
    return graph;
}

static std::vector<CUgraphNode> dependencies_of(CUgraphNode node) {
    std::size_t count = 4;
    std::vector<CUgraphNode> found(count);
    CHECK(cuGraphNodeGetDependencies_v2(node, found.data(), std::vector<CUgraphEdgeData>(count).data(), &count));
    found.resize(count);
    return found;
}

struct Made {
    CUgraph graph = nullptr;
    CUgraphNode nodes[4] = {};
    Made() { CHECK(cuGraphCreate(&graph, 0)); }
    void add(int index, std::vector<CUgraphNode> dependencies) {
        Append work(list, 0);
        CUDA_KERNEL_NODE_PARAMS parameters = work.node(append);
        CHECK(cuGraphAddKernelNode_v2(&nodes[index], graph, dependencies.data(), dependencies.size(), &parameters));
    }
    void join(int from, int to) { CHECK(cuGraphAddDependencies(graph, &nodes[from], &nodes[to], 1)); }
    void begin() {
        add(0, {});
        add(1, {nodes[0]});
        add(2, {nodes[0]});
    }
};

// What an update of an exec of the graph from a fresh capture gives.
static CUgraphExecUpdateResult updated(CUgraph graph) {
    CUgraphExec exec = instantiate(graph);
    CUgraph fresh = captured(7);
    CUgraphExecUpdateResultInfo info = {};
    CUresult result = cuGraphExecUpdate_v2(exec, fresh, &info);
    REQUIRE((result == CUDA_SUCCESS) == (info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS));
    if (result != CUDA_SUCCESS) EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, result);
    return info.result;
}

int main() {
    constexpr auto fits = CU_GRAPH_EXEC_UPDATE_SUCCESS, other = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    context = start();
    TestLibrary library;
    append = library.function("append");
    list = device_memory(256);
    CUgraph graph = captured(1), clone = nullptr;
    std::vector<CUgraphNode> nodes = nodes_of(graph);
    REQUIRE((dependencies_of(nodes[3]) == std::vector<CUgraphNode>{nodes[2], nodes[1]}));
    REQUIRE(updated(graph) == fits);
    CHECK(cuGraphClone(&clone, graph));
    REQUIRE(updated(clone) == fits);

    Made as_kept, turned, behind, behind_turned, again;
    for (Made *made : {&as_kept, &turned, &behind, &behind_turned, &again}) made->begin();
    as_kept.add(3, {as_kept.nodes[2], as_kept.nodes[1]});
    REQUIRE(updated(as_kept.graph) == fits);
    turned.add(3, {turned.nodes[1], turned.nodes[2]});
    REQUIRE(updated(turned.graph) == other);
    behind.add(3, {});
    behind.join(2, 3);
    behind.join(1, 3);
    REQUIRE(updated(behind.graph) == fits);
    behind_turned.add(3, {});
    behind_turned.join(1, 3);
    behind_turned.join(2, 3);
    REQUIRE(updated(behind_turned.graph) == other);
    again.add(3, {again.nodes[1], again.nodes[2]});
    CHECK(cuGraphRemoveDependencies(again.graph, &again.nodes[1], &again.nodes[3], 1));
    again.join(1, 3);
    REQUIRE(updated(again.graph) == fits);
}
