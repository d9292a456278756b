// Adding a node of any kind, and changing one: what the typed calls and the generic one share.
#pragma once

#include "graph.h"

namespace sim {

// What a program gave as the context of a node: null is the current one.
CUresult context_or_current(CUcontext *context);
CUresult add_checked(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                     std::size_t count, Payload payload);
CUresult child_payload(CUgraph child, ChildPayload *payload);
CUresult alloc_payload(CUDA_MEM_ALLOC_NODE_PARAMS &parameters, MemAllocPayload *payload);

} // namespace sim
