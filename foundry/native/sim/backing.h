// Where device memory comes from: host pages at addresses that no run has twice, counted against the device.
#pragma once

#include "devices.h"

namespace sim {

// 512-aligned; small ones share 2 MiB blocks, as the driver's do. CUDA_ERROR_OUT_OF_MEMORY beyond the device's limit.
// New memory holds arbitrary bytes at its start, never zeros by promise.
CUresult take_backing(Device &device, std::uint64_t size, std::uint64_t *address);
void give_back_backing(Device &device, std::uint64_t address, std::uint64_t size);

// Pages of the host at an address of the seeded sequence; null if there are none.
void *take_pages(std::uint64_t size);
void give_back_pages(void *address, std::uint64_t size);

// Marks the first bytes as never written.
void spoil(void *address, std::uint64_t size);

} // namespace sim
