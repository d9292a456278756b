// Allocation as the families share it.
#pragma once

#include "regions.h"

namespace sim {

// Frees a device, pool or managed region; CUDA_ERROR_INVALID_VALUE for any other address.
CUresult free_region(std::uint64_t address);

// Ends what cuIpcOpenMemHandle opened, however often.
void release_peer(const Region &region);

} // namespace sim
