// Making, destroying and rewiring graphs.
#include "capture.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace sim {
namespace {

bool being_captured(const Graph &graph) {
    for (const std::shared_ptr<Capture> &capture : stream_registry().captures)
        if (capture->graph.get() == &graph) return true;
    return false;
}

void unlink(Node &from, Node &to) {
    std::erase_if(to.dependencies, [&](const Link &link) { return link.node == &from; });
    std::erase_if(from.dependents, [&](const Link &link) { return link.node == &to; });
}

CUresult both_ends(Graph &graph, const CUgraphNode *from, const CUgraphNode *to, std::size_t index, Node **first,
                   Node **second) {
    SIM_TRY(find_node(from[index], first));
    SIM_TRY(find_node(to[index], second));
    return (*first)->graph == &graph && (*second)->graph == &graph && *first != *second ? CUDA_SUCCESS
                                                                                        : CUDA_ERROR_INVALID_VALUE;
}

CUresult add_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                   std::size_t count) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(handle, &graph));
    if (count && (!from || !to)) return CUDA_ERROR_INVALID_VALUE;
    // As the real driver does: the first edge's data is taken for all edges of the call.
    CUgraphEdgeData shared = data && count ? data[0] : CUgraphEdgeData{};
    std::set<std::pair<Node *, Node *>> pairs;
    for (std::size_t index = 0; index < count; ++index) {
        Node *first = nullptr, *second = nullptr;
        SIM_TRY(both_ends(*graph, from, to, index, &first, &second));
        SIM_TRY(check_edge(*first, *second, shared));
        if (linked(*first, *second)) return CUDA_ERROR_INVALID_VALUE;
        if (!pairs.emplace(first, second).second) return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t index = 0; index < count; ++index)
        link(*graph_registry().nodes.find(from[index]), *graph_registry().nodes.find(to[index]), shared);
    return CUDA_SUCCESS;
}

CUresult remove_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, std::size_t count) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(handle, &graph));
    if (count && (!from || !to)) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < count; ++index) {
        Node *first = nullptr, *second = nullptr;
        SIM_TRY(both_ends(*graph, from, to, index, &first, &second));
        if (!linked(*first, *second)) return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t index = 0; index < count; ++index)
        unlink(*graph_registry().nodes.find(from[index]), *graph_registry().nodes.find(to[index]));
    return CUDA_SUCCESS;
}

} // namespace
} // namespace sim

using sim::Graph;
using sim::graph_registry;
using sim::Node;

CUresult sim::cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
    if (!phGraph || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = make_graph()->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphDestroy(CUgraph hGraph) {
    std::shared_ptr<Graph> graph = graph_registry().graphs.share(hGraph);
    if (!graph || graph->owned) return CUDA_ERROR_INVALID_VALUE;
    if (being_captured(*graph)) return CUDA_ERROR_ILLEGAL_STATE;
    forget_graph(*graph);
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(originalGraph, &graph));
    if (!phGraphClone) return CUDA_ERROR_INVALID_VALUE;
    for (const std::shared_ptr<Node> &node : graph->nodes)
        if (std::holds_alternative<MemAllocPayload>(node->payload) ||
            std::holds_alternative<MemFreePayload>(node->payload))
            return CUDA_ERROR_NOT_SUPPORTED;
    *phGraphClone = clone_graph(*graph)->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(hClonedGraph, &graph));
    if (!phNode) return CUDA_ERROR_INVALID_VALUE;
    for (const std::shared_ptr<Node> &node : graph->nodes)
        if (node->original == hOriginalNode) {
            *phNode = node->handle;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                     size_t numDependencies) {
    return add_edges(hGraph, from, to, nullptr, numDependencies);
}

CUresult sim::cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                        const CUgraphEdgeData *edgeData, size_t numDependencies) {
    return add_edges(hGraph, from, to, edgeData, numDependencies);
}

CUresult sim::cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                        size_t numDependencies) {
    return remove_edges(hGraph, from, to, numDependencies);
}

CUresult sim::cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                           const CUgraphEdgeData *, size_t numDependencies) {
    return remove_edges(hGraph, from, to, numDependencies);
}

CUresult sim::cuGraphDestroyNode(CUgraphNode hNode) {
    Node *node = nullptr;
    SIM_TRY(find_node(hNode, &node));
    Graph &graph = *node->graph;
    if (being_captured(graph)) return CUDA_ERROR_ILLEGAL_STATE;
    if (std::holds_alternative<MemAllocPayload>(node->payload) || std::holds_alternative<MemFreePayload>(node->payload))
        return CUDA_ERROR_NOT_SUPPORTED;
    while (!node->dependencies.empty()) unlink(*node->dependencies.back().node, *node);
    while (!node->dependents.empty()) unlink(*node, *node->dependents.back().node);
    if (auto *child = std::get_if<ChildPayload>(&node->payload)) forget_graph(*child->graph);
    graph_registry().nodes.remove(hNode);
    std::erase_if(graph.nodes, [&](const std::shared_ptr<Node> &known) { return known.get() == node; });
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(hGraph, &graph));
    if (!path) return CUDA_ERROR_INVALID_VALUE;
    std::FILE *file = std::fopen(path, "w");
    if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
    std::fprintf(file, "digraph foundry_sim {\n");
    for (std::size_t index = 0; index < graph->nodes.size(); ++index) {
        const Node &node = *graph->nodes[index];
        std::fprintf(file, "  \"%p\" [label=\"%zu: type %d\"];\n", static_cast<const void *>(node.handle), index,
                     static_cast<int>(type_of(node.payload)));
        for (const Link &dependent : node.dependents)
            std::fprintf(file, "  \"%p\" -> \"%p\";\n", static_cast<const void *>(node.handle),
                         static_cast<const void *>(dependent.node->handle));
    }
    std::fprintf(file, "}\n");
    return std::fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
