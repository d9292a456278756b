// Reads a graph and writes it to the spool, raw.
#ifndef FOUNDRY_HOOK_GRAPH_RECORD_H
#define FOUNDRY_HOOK_GRAPH_RECORD_H

#include <stdint.h>

#include "../table/real.h"
#include "kernel_record.h"
#include "spool.h"

namespace foundry {

// What the spool will say of a graph. Reading and writing may lie apart.
class GraphRecord {
  public:
    // Reads the graph as the driver holds it now; the context it runs in is current.
    GraphRecord(CUgraph graph, CUgraphExec exec, uint64_t flags, const char *set, const char *key);
    // KERNEL where something is new, then GRAPH. Once. Calls no driver.
    bool write();

  private:
    CUdevice device_;
    Frame frame_;
    KernelRecorder kernels_;
};

// After a successful instantiation. Changes nothing: neither the graph, nor the exec, nor any result.
void record_graph(CUgraph graph, CUgraphExec exec, uint64_t flags);

} // namespace foundry

#endif
