// Blocks that the program has given back while their memory stays mapped: the stream-ordered pool keeps them.
#ifndef FOUNDRY_HOOK_ARENA_BLOCKS_H
#define FOUNDRY_HOOK_ARENA_BLOCKS_H

#include "arena.h"

namespace foundry {

// The live allocation at exactly this address becomes the caller's; writes the FREE frame.
bool arena_retire(CUdeviceptr address, Block *block);
// A retired block lives again with a new size and ordinal; writes the ALLOCATION frame.
void arena_revive(Block *block, size_t size, CUcontext context, int origin);
// The place of a retired block may be taken again. Its work must have ended.
void arena_release(const Block &block);

// Waits for all work of a context. CUDA_SUCCESS as well for a context that is gone.
CUresult fence_context(CUcontext context);

// Between true from fence_begin and fence_end no capture begins in this process; false: one is in progress.
bool fence_begin();
void fence_end();
// A capture begins: counts it, then waits for fences under way (bounded).
void capture_begun();
void capture_ended();

} // namespace foundry

#endif
