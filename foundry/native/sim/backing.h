// Where device memory comes from: host pages at addresses that no run has twice, counted against the device.
#pragma once

#include "devices.h"

namespace sim {

// 512-aligned; small ones share 2 MiB blocks, as the driver's do. CUDA_ERROR_OUT_OF_MEMORY beyond the device's limit.
// New memory holds arbitrary bytes at its start, never zeros by promise.
CUresult take_backing(Device &device, std::uint64_t size, std::uint64_t *address);
void give_back_backing(Device &device, std::uint64_t address, std::uint64_t size);

// Where other processes find memory: in a file that holds all of its block, as the driver shares no less. Behind the
// block there is one byte for each place of the block where memory may begin; freeing that memory changes it.
struct SharedPlace {
    int file = -1;
    std::uint64_t offset = 0, block = 0; // block: its size
    unsigned char age = 0;
};
// Moves the block, in place, to such a file if it is not in one. False: there is none to be had.
bool share_backing(const Device &device, std::uint64_t address, std::uint64_t size, SharedPlace *place);
// The file offset of the byte for the memory at that offset of the block.
std::uint64_t age_of(std::uint64_t block, std::uint64_t offset);

// Pages of the host at an address of the seeded sequence; null if there are none.
void *take_pages(std::uint64_t size);
void give_back_pages(void *address, std::uint64_t size);

// Marks the first bytes as never written.
void spoil(void *address, std::uint64_t size);

} // namespace sim
