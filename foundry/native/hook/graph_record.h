// Reads a graph and writes it to the spool, raw.
#ifndef FOUNDRY_HOOK_GRAPH_RECORD_H
#define FOUNDRY_HOOK_GRAPH_RECORD_H

#include <stdint.h>

#include "../table/real.h"

namespace foundry {

// After a successful instantiation. Changes nothing: neither the graph, nor the exec, nor any result.
void record_graph(CUgraph graph, CUgraphExec exec, uint64_t flags);

} // namespace foundry

#endif
