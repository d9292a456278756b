// Memory that a graph allocates and frees as it runs.
#pragma once

#include "graph.h"

namespace sim {

// Takes the addresses that a mem-alloc node will give out at each launch.
CUresult make_memory(int device, std::uint64_t size, std::shared_ptr<GraphMemory> *memory);
// An allocation node runs: CUDA_ERROR_INVALID_VALUE if its memory is still allocated from an earlier launch.
CUresult start_memory(GraphMemory &memory);
// A free node, or a free on a stream. CUDA_ERROR_INVALID_VALUE if the address is no live memory of a graph.
CUresult end_memory(CUdeviceptr address);
bool graph_memory_live(CUdeviceptr address);
std::uint64_t graph_memory_used(int device, bool only_live);

} // namespace sim
