// The reserved range of each device.
#ifndef FOUNDRY_HOOK_ARENA_RANGE_H
#define FOUNDRY_HOOK_ARENA_RANGE_H

#include "arena.h"
#include "placement.h"

namespace foundry {

struct Range {
    uint32_t device;
    CUdeviceptr base;
    size_t arena_size;
    Placement *placements[FOUNDRY_ARENA_COUNT]; // guarded by the arena's lock
    uint64_t ordinals[FOUNDRY_ARENA_COUNT];     // likewise
};

// Null where there is no range. Lock-free; a range stays for the life of the process.
Range *range_of_device(uint32_t device);
Range *range_of_address(CUdeviceptr address);
void ranges_of_devices_forget();

} // namespace foundry

#endif
