// Physical memory behind arena addresses.
#ifndef FOUNDRY_HOOK_MAPPING_H
#define FOUNDRY_HOOK_MAPPING_H

#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "../table/real.h"

namespace foundry {

// Maps the granules of [address, address + size) that are not mapped yet. All or nothing: on failure what it mapped is
// unmapped. Another thread that maps the same granule is waited for.
CUresult map_granules(uint32_t device, CUdeviceptr address, size_t size);

// Unmaps what map_granules mapped within the range. The caller has fenced.
CUresult unmap_granules(CUdeviceptr address, size_t size);

// Maps memory that another process made. From there on it is the device's as any other: map_peer opens it, and
// unmap_granules unmaps it.
CUresult map_import(uint32_t device, CUdeviceptr address, size_t size, CUmemGenericAllocationHandle memory);

// Physical memory, as it was made at once.
struct MappedPiece {
    CUdeviceptr address;
    size_t size;
};
// The pieces that hold the range, ascending. False: not all of it is mapped.
bool mapped_pieces(CUdeviceptr address, size_t size, std::vector<MappedPiece> *found);

// Whether memory of the device can be exported; known once some of it is mapped.
bool mapping_exports(uint32_t device);

// True if every granule of the range is mapped.
bool granules_mapped(CUdeviceptr address, size_t size);

// The device whose context may reach the memory of another: for all that is mapped now and later.
CUresult map_peer(uint32_t device, uint32_t peer);

void mapping_forget();

} // namespace foundry

#endif
