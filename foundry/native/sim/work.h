// Doing what a node, or a call on a stream, asks for. The simulator's streams are eager: work is done in the calling
// thread.
#pragma once

#include "graph.h"

namespace sim {

// Whether the work could be launched as it stands: sizes, clusters, shared memory, addresses.
CUresult check_work(const Payload &payload);
// As check_work, for what is refused already when a node is made.
CUresult check_node(const Payload &payload);
CUresult do_work(const Payload &payload);

// Copies between the two ends of a CUDA_MEMCPY3D, whatever their kinds of memory.
CUresult check_copy(const CUDA_MEMCPY3D &copy);
void do_copy(const CUDA_MEMCPY3D &copy);
CUresult check_fill(const CUDA_MEMSET_NODE_PARAMS &fill);
void do_fill(const CUDA_MEMSET_NODE_PARAMS &fill);

// Reads the parameters of a launch, from an array of pointers or from the `extra` buffer.
CUresult read_parameters(const Function &function, void **pointers, void **extra, KernelPayload *payload);

} // namespace sim
