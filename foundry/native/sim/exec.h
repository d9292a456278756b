// Instantiated graphs: a private copy, ordered, whose nodes answer to the handles of the graph they came from.
#pragma once

#include "graph.h"

#include <set>
#include <unordered_map>

namespace sim {

struct Exec {
    CUgraphExec handle = nullptr;
    unsigned long long flags = 0;
    std::shared_ptr<Graph> graph;
    std::vector<Node *> order;
    std::unordered_map<CUgraphNode, Node *> twins; // nodes of the source graph, its children's included
    std::set<const Node *> disabled;
    ~Exec();
};

Table<CUgraphExec, Exec> &execs();
CUresult find_exec(CUgraphExec handle, Exec **exec);
CUresult find_twin(CUgraphExec handle, CUgraphNode node, Exec **exec, Node **twin);
template <class Kind> CUresult find_twin_payload(CUgraphExec handle, CUgraphNode node, Kind **payload) {
    Exec *exec = nullptr;
    Node *twin = nullptr;
    SIM_TRY(find_twin(handle, node, &exec, &twin));
    *payload = std::get_if<Kind>(&twin->payload);
    return *payload ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Whether an exec's node may take over what another node does, and what stands against it.
CUgraphExecUpdateResult may_take_over(const Payload &old, const Payload &fresh);
void take_over(Payload &old, const Payload &fresh);

} // namespace sim
