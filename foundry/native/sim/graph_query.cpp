// Reading a graph's shape. Getters without room for edge data refuse what they would have to leave out.
#include "graph.h"

namespace sim {
namespace {

struct Edge {
    CUgraphNode from, to;
    CUgraphEdgeData data;
};

// The driver's way with arrays: null asks for the count; room beyond what there is is filled with nulls.
CUresult give_nodes(const std::vector<CUgraphNode> &found, CUgraphNode *nodes, std::size_t *count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    if (!nodes) {
        *count = found.size();
        return CUDA_SUCCESS;
    }
    for (std::size_t index = 0; index < *count; ++index) nodes[index] = index < found.size() ? found[index] : nullptr;
    *count = std::min(*count, found.size());
    return CUDA_SUCCESS;
}

CUresult give_links(const std::vector<Link> &links, CUgraphNode *nodes, CUgraphEdgeData *data, std::size_t *count) {
    if (!count || (data && !nodes)) return CUDA_ERROR_INVALID_VALUE;
    if (nodes && !data)
        for (std::size_t index = 0; index < links.size() && index < *count; ++index)
            if (!plain(links[index].data)) return CUDA_ERROR_LOSSY_QUERY;
    std::vector<CUgraphNode> handles;
    for (const Link &link : links) handles.push_back(link.node->handle);
    if (data)
        for (std::size_t index = 0; index < *count; ++index)
            data[index] = index < links.size() ? links[index].data : CUgraphEdgeData{};
    return give_nodes(handles, nodes, count);
}

CUresult give_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, std::size_t *count) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(handle, &graph));
    if (!count || (from == nullptr) != (to == nullptr) || (data && !from)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> edges;
    for (const std::shared_ptr<Node> &node : graph->nodes)
        for (const Link &dependent : node->dependents)
            edges.push_back({node->handle, dependent.node->handle, dependent.data});
    if (!from) {
        *count = edges.size();
        return CUDA_SUCCESS;
    }
    if (!data)
        for (const Edge &edge : edges)
            if (!plain(edge.data)) return CUDA_ERROR_LOSSY_QUERY;
    for (std::size_t index = 0; index < *count; ++index) {
        Edge edge = index < edges.size() ? edges[index] : Edge{};
        from[index] = edge.from;
        to[index] = edge.to;
        if (data) data[index] = edge.data;
    }
    *count = std::min(*count, edges.size());
    return CUDA_SUCCESS;
}

} // namespace
} // namespace sim

using sim::Graph;
using sim::Node;

CUresult sim::cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(hGraph, &graph));
    std::vector<CUgraphNode> found;
    for (const std::shared_ptr<Node> &node : graph->nodes) found.push_back(node->handle);
    return give_nodes(found, nodes, numNodes);
}

CUresult sim::cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(hGraph, &graph));
    std::vector<CUgraphNode> found;
    for (const std::shared_ptr<Node> &node : graph->nodes)
        if (node->dependencies.empty()) found.push_back(node->handle);
    return give_nodes(found, rootNodes, numRootNodes);
}

CUresult sim::cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges) {
    return give_edges(hGraph, from, to, nullptr, numEdges);
}

CUresult sim::cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
                                 size_t *numEdges) {
    return give_edges(hGraph, from, to, edgeData, numEdges);
}

CUresult sim::cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
    Node *node = nullptr;
    SIM_TRY(find_node(hNode, &node));
    if (!type) return CUDA_ERROR_INVALID_VALUE;
    *type = type_of(node->payload);
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies) {
    return sim::cuGraphNodeGetDependencies_v2(hNode, dependencies, nullptr, numDependencies);
}

CUresult sim::cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
                                            size_t *numDependencies) {
    Node *node = nullptr;
    SIM_TRY(find_node(hNode, &node));
    return give_links(node->dependencies, dependencies, edgeData, numDependencies);
}

CUresult sim::cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes) {
    return sim::cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, nullptr, numDependentNodes);
}

CUresult sim::cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
                                              size_t *numDependentNodes) {
    Node *node = nullptr;
    SIM_TRY(find_node(hNode, &node));
    return give_links(node->dependents, dependentNodes, edgeData, numDependentNodes);
}
