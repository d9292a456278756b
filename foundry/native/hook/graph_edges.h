// The edges of a graph, in the order in which the driver keeps the dependencies of each node.
#ifndef FOUNDRY_HOOK_GRAPH_EDGES_H
#define FOUNDRY_HOOK_GRAPH_EDGES_H

#include <stdint.h>

#include <vector>

#include "../table/real.h"

namespace foundry {

struct Edge {
    uint32_t from, to; // nodes by their place, UINT32_MAX for none of the graph's
    CUgraphEdgeData data;
};

// By the node that they lead to; those to one node as it keeps its dependencies. An exec takes a graph for an update
// only where these are in the same order, so what is built in it can be updated as the captured graph could. None but
// after CUDA_SUCCESS.
CUresult read_edges(CUgraph graph, const std::vector<CUgraphNode> &nodes, std::vector<Edge> *edges);

} // namespace foundry

#endif
