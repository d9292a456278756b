// Blocks that the program has given back while their memory stays mapped: the stream-ordered pool keeps them.
#ifndef FOUNDRY_HOOK_ARENA_BLOCKS_H
#define FOUNDRY_HOOK_ARENA_BLOCKS_H

#include <vector>

#include "arena.h"

namespace foundry {

// The live allocation at exactly this address becomes the caller's; writes the FREE frame.
bool arena_retire(CUdeviceptr address, Block *block);
// A retired block lives again with a new size and ordinal; writes the ALLOCATION frame.
void arena_revive(Block *block, size_t size, CUcontext context, int origin);
// The place of a retired block may be taken again. Its work must have ended.
void arena_release(const Block &block);

// Waits for all work of a context, null = the current one. True as well for a context that is gone. False: it may still
// be at work; *error is what the driver says of that work, if it is the work that failed.
bool fence_context(CUcontext context, CUresult *error);
// Fences each context once and releases in the order given. What cannot be fenced waits in quarantine. The caller holds
// a fence.
void arena_release_fenced(const std::vector<Block> &blocks);

// Between true from fence_begin and fence_end no capture begins in this process; false: one is in progress.
bool fence_begin();
void fence_end();
// Between true from still_begin and still_end no capture begins, and what is mapped stays mapped; false: a capture is
// in progress, or somebody's fence does not end. The one who holds it may call fence_context.
bool still_begin();
void still_end();
// A capture begins: counts it, then waits for fences under way (bounded).
void capture_begun();
void capture_ended();
void fence_forget();

} // namespace foundry

#endif
