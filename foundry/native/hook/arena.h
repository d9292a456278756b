// Device memory at addresses that come back: one reserved range per device, cut into arenas (abi/spool_format.h).
//
// Contract: every function may be called from any thread and takes its own lock; none holds it across a driver call.
// Placement is a function of the sequence of calls alone: first fit, lowest address first.
#ifndef FOUNDRY_HOOK_ARENA_H
#define FOUNDRY_HOOK_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "../abi/spool_format.h"
#include "../table/real.h"

namespace foundry {

constexpr size_t granule_bytes = size_t{2} << 20;
constexpr size_t small_limit = size_t{1} << 20; // smaller ones share granules
constexpr size_t small_alignment = 512;

struct Block {
    CUdeviceptr address;
    size_t size;  // as asked for
    size_t taken; // bytes of the arena
    uint32_t device;
    uint8_t arena;
    uint8_t origin;
    uint64_t ordinal; // within device and arena, from 0
    CUcontext context;
    bool opens; // a page, see placement.h
};

// Reserves the range of a device and writes the DEVICE frame. base = 0: the candidates in their fixed order,
// and arenas of a size that follows from the device's memory.
// Idempotent: true if a range stands, whichever base it has. False: no range; the DEVICE frame says 0, a finding says
// why.
bool arena_reserve(uint32_t device, CUdeviceptr base, size_t arena_size);
// The base that was reserved, 0 for none, and the size of one arena.
CUdeviceptr arena_base(uint32_t device, size_t *arena_size);

// Takes a place and maps it if it is not mapped. Writes the ALLOCATION frame. The driver's error if it cannot be
// mapped; CUDA_ERROR_NOT_SUPPORTED if there is no range or the arena is full. After any failure the caller asks the
// driver for the memory, and ends the block with one of the next two.
CUresult arena_allocate(uint32_t device, int arena, size_t size, int origin, Block *block);
// The driver had the memory, at that address: the block's place stays empty until that is freed, so that all that
// follows lies where it would lie without the failure.
void arena_stand_in(const Block &block, CUdeviceptr address);
// The driver has freed memory at that address.
void arena_stand_in_gone(CUdeviceptr address);
// The block that memory of the driver's stands in for, taken out; false: for none.
bool arena_stand_in_take(CUdeviceptr address, Block *block);
// The driver had none either: as if the block had not been asked for.
void arena_undo(const Block &block);

// Frees a live allocation. Fenced with the owning context's work outside a capture, put in quarantine inside one. A
// fence that fails gives the driver's error, and the memory stays mapped. CUDA_ERROR_INVALID_VALUE: an address in the
// range at which no live allocation begins. CUDA_ERROR_NOT_FOUND: outside every range.
CUresult arena_free(CUdeviceptr address);

// Restore: marks [address, address + size) as used, for good; maps nothing. Bounds are rounded outward to 512 bytes. A
// range of less than small_limit leaves the rest of its granules to small allocations, in the order in which these
// would have come there. False: outside the range, or something lives there already.
bool arena_claim(uint32_t device, CUdeviceptr address, size_t size);

// Maps the granules that [address, address + size) touches and that are not mapped yet, readable and writable by the
// device. Independent of claims. CUDA_ERROR_INVALID_VALUE: outside the reservation.
CUresult arena_map(uint32_t device, CUdeviceptr address, size_t size);

// The live allocation that contains the address.
bool arena_find(CUdeviceptr address, Block *block);
// True if the address lies in a reserved range, live or not.
bool arena_covers(CUdeviceptr address);
// True if it was claimed by the restore engine.
bool arena_claimed(CUdeviceptr address);
// Calls `visit` for a copy of each live allocation, by device, then ascending address, without holding the lock. Stops
// at false.
void arena_each(bool (*visit)(const Block &block, void *user), void *user);
// Ordinals given so far.
uint64_t arena_count(uint32_t device, int arena);

// Releases what was freed during captures; no-op while one is in progress. The allocation paths call it themselves.
void arena_drain();
// Everything a context owned, after it is gone.
void arena_context_gone(CUcontext context);
// The child of a fork owns none of the parent's device memory.
void arena_forget();

} // namespace foundry

#endif
