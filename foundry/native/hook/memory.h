// Shared by the bodies that serve device memory.
#ifndef FOUNDRY_HOOK_MEMORY_H
#define FOUNDRY_HOOK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "../table/real.h"
#include "arena.h"

namespace foundry {

// Device of the current context. False: there is none, and the driver's own answer says so.
bool current_device(uint32_t *device);
// Whether an allocation for the current context is ours to place. The arena may still have no room, or the device no
// range.
bool arena_serves(uint32_t *device);
// Notes an allocation that the driver served because the arena could not.
void served_outside(CUdeviceptr address, size_t size, const char *function);
// Notes one that nobody asked the arena for, if the hook is armed: where all later ones should lie is not known any
// more.
void served_unplaced(CUdeviceptr address, size_t size, const char *function);
// Ends a block that the arena could not serve, after the driver was asked.
CUresult served_instead(CUresult result, const Block &block, const CUdeviceptr *address, size_t size,
                        const char *function);
// Frees what the hook placed, armed or not. *placed = false: the address is not ours.
CUresult free_placed(CUdeviceptr address, bool *placed);

} // namespace foundry

#endif
