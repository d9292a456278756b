#include "graph_edges.h"

#include <string.h>

#include <algorithm>
#include <span>
#include <utility>

namespace foundry {
namespace {

// Finds the place of a node.
class Places {
  public:
    explicit Places(const std::vector<CUgraphNode> &nodes) {
        order_.reserve(nodes.size());
        for (uint32_t index = 0; index < nodes.size(); ++index) order_.emplace_back(nodes[index], index);
        std::sort(order_.begin(), order_.end());
    }
    uint32_t of(CUgraphNode wanted) const {
        auto found = std::lower_bound(order_.begin(), order_.end(), std::pair<CUgraphNode, uint32_t>(wanted, 0));
        return found != order_.end() && found->first == wanted ? found->second : UINT32_MAX;
    }

  private:
    std::vector<std::pair<CUgraphNode, uint32_t>> order_;
};

CUresult listed_edges(CUgraph graph, const Places &places, std::vector<Edge> *edges) {
    size_t count = 0;
    bool with_data = real.cuGraphGetEdges_v2 != nullptr;
    if (!with_data && !real.cuGraphGetEdges) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = with_data ? real.cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count)
                                : real.cuGraphGetEdges(graph, nullptr, nullptr, &count);
    if (result != CUDA_SUCCESS || !count) return result;
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> data(count);
    result = with_data ? real.cuGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &count)
                       : real.cuGraphGetEdges(graph, from.data(), to.data(), &count);
    if (result != CUDA_SUCCESS) return result;
    count = std::min(count, from.size());
    edges->reserve(count);
    for (size_t edge = 0; edge < count; ++edge)
        edges->push_back({places.of(from[edge]), places.of(to[edge]), data[edge]});
    return CUDA_SUCCESS;
}

bool same_edge(const Edge &left, const Edge &right) {
    return left.from == right.from && left.to == right.to && !memcmp(&left.data, &right.data, sizeof left.data);
}

// The edges to one node in the order in which the driver keeps them; as they are if it cannot tell.
void order_as_kept(CUgraphNode node, const Places &places, std::span<Edge> edges) {
    size_t count = edges.size();
    bool with_data = real.cuGraphNodeGetDependencies_v2 != nullptr;
    std::vector<CUgraphNode> from(count);
    std::vector<CUgraphEdgeData> data(count);
    CUresult result = with_data ? real.cuGraphNodeGetDependencies_v2(node, from.data(), data.data(), &count)
                      : real.cuGraphNodeGetDependencies ? real.cuGraphNodeGetDependencies(node, from.data(), &count)
                                                        : CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS || count != edges.size()) return;
    std::vector<Edge> kept;
    kept.reserve(count);
    for (size_t edge = 0; edge < count; ++edge) kept.push_back({places.of(from[edge]), edges[0].to, data[edge]});
    if (std::is_permutation(kept.begin(), kept.end(), edges.begin(), same_edge))
        std::copy(kept.begin(), kept.end(), edges.begin());
}

void order_by_node(const std::vector<CUgraphNode> &nodes, const Places &places, std::vector<Edge> *edges) {
    std::stable_sort(edges->begin(), edges->end(),
                     [](const Edge &left, const Edge &right) { return left.to < right.to; });
    for (size_t begin = 0, end; begin < edges->size(); begin = end) {
        const uint32_t to = (*edges)[begin].to;
        for (end = begin + 1; end < edges->size() && (*edges)[end].to == to;) ++end;
        if (end - begin > 1 && to < nodes.size()) order_as_kept(nodes[to], places, {&(*edges)[begin], end - begin});
    }
}

} // namespace

CUresult read_edges(CUgraph graph, const std::vector<CUgraphNode> &nodes, std::vector<Edge> *edges) {
    const Places places(nodes);
    CUresult result = listed_edges(graph, places, edges);
    if (result == CUDA_SUCCESS) order_by_node(nodes, places, edges);
    return result;
}

} // namespace foundry
