// The generic description of a node, turned into what the node does.
#pragma once

#include "graph.h"

namespace sim {

// What a node that exists can be changed to; kinds whose nodes cannot be changed give CUDA_ERROR_NOT_SUPPORTED.
CUresult changed_payload(const CUgraphNodeParams &parameters, const Payload &old, Payload *payload);

} // namespace sim
