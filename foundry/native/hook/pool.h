// Stream-ordered allocations outside captures: what a stream frees, the same stream may take again without waiting.
#ifndef FOUNDRY_HOOK_POOL_H
#define FOUNDRY_HOOK_POOL_H

#include <vector>

#include "arena.h"

namespace foundry {

// A stream as an owner of idle blocks. A null or legacy handle means one stream a context; the per-thread handle, one a
// thread.
struct StreamKey {
    CUcontext context;
    CUstream stream;
    unsigned thread;
    bool operator==(const StreamKey &other) const {
        if (stream != other.stream || thread != other.thread) return false;
        return (stream && stream != CU_STREAM_PER_THREAD) || context == other.context;
    }
};
StreamKey stream_key(CUstream stream, bool per_thread);

// An idle block of this stream, device and arena with room for the size: the smallest of at most twice the size, then
// the lowest.
bool pool_take(const StreamKey &key, uint32_t device, int arena, size_t size, Block *block);
void pool_keep(const StreamKey &key, const Block &block);

// The stream is gone: its blocks belong to no one and are released with a fence by pool_sweep.
void pool_stream_gone(CUstream stream);
// Releases the blocks of streams that are gone; no-op during captures.
void pool_sweep();
// Releases all idle blocks after a fence. True if there were any; false as well during captures.
bool pool_trim();
// Moves the idle blocks of a context to `blocks`.
void pool_context_gone(CUcontext context, std::vector<Block> *blocks);

} // namespace foundry

#endif
