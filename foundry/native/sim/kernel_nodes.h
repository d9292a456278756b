// From the program's description of a kernel node to the simulator's.
#pragma once

#include "work.h"

namespace sim {

CUresult kernel_payload(const CUDA_KERNEL_NODE_PARAMS &parameters, KernelPayload *payload);
CUresult kernel_payload(const CUDA_KERNEL_NODE_PARAMS_v1 &parameters, KernelPayload *payload);

} // namespace sim
