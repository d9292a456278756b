#include "pool.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "arena_blocks.h"
#include "placement.h"
#include "process.h"
#include "state.h"

namespace foundry {
namespace {

struct Idle {
    StreamKey key;
    bool orphan;
    Block block;
};

std::mutex mutex;
std::vector<Idle> *idle; // made on first use
std::atomic<unsigned> orphans{0};

std::vector<Idle> &all() {
    if (!idle) idle = new std::vector<Idle>;
    return *idle;
}

template <typename Condition> std::vector<Block> take_out(Condition condition) {
    std::vector<Block> blocks;
    std::lock_guard<std::mutex> lock(mutex);
    std::erase_if(all(), [&](const Idle &entry) {
        if (!condition(entry)) return false;
        if (entry.orphan) orphans.fetch_sub(1, std::memory_order_relaxed);
        blocks.push_back(entry.block);
        return true;
    });
    std::sort(blocks.begin(), blocks.end(), [](const Block &a, const Block &b) { return a.address < b.address; });
    return blocks;
}

} // namespace

StreamKey stream_key(CUstream stream, bool per_thread) {
    StreamKey key{};
    if (real.cuCtxGetCurrent) real.cuCtxGetCurrent(&key.context);
    bool own = stream == CU_STREAM_PER_THREAD || (!stream && per_thread);
    if (own) {
        key.stream = CU_STREAM_PER_THREAD;
        key.thread = thread_ordinal();
    } else if (stream != CU_STREAM_LEGACY) {
        key.stream = stream;
    }
    return key;
}

bool pool_take(const StreamKey &key, uint32_t device, int arena, size_t size, Block *block) {
    uint64_t wanted = Placement::taken_for(size);
    std::lock_guard<std::mutex> lock(mutex);
    auto better = [](const Block &a, const Block &b) {
        return a.taken != b.taken ? a.taken < b.taken : a.address < b.address;
    };
    auto best = all().end();
    for (auto entry = all().begin(); entry != all().end(); ++entry) {
        const Block &candidate = entry->block;
        if (entry->orphan || !(entry->key == key) || candidate.device != device || candidate.arena != arena) continue;
        if (candidate.taken < wanted || candidate.taken > 2 * wanted) continue;
        if (best == all().end() || better(candidate, best->block)) best = entry;
    }
    if (best == all().end()) return false;
    *block = best->block;
    all().erase(best);
    return true;
}

void pool_keep(const StreamKey &key, const Block &block) {
    std::lock_guard<std::mutex> lock(mutex);
    all().push_back({key, false, block});
    // Whatever still uses it was ordered before the free on this stream.
    all().back().block.context = key.context;
}

void pool_stream_gone(CUstream stream) {
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return;
    std::lock_guard<std::mutex> lock(mutex);
    for (Idle &entry : all())
        if (entry.key.stream == stream && !entry.orphan) {
            entry.orphan = true;
            orphans.fetch_add(1, std::memory_order_relaxed);
        }
}

void pool_sweep() {
    if (orphans.load(std::memory_order_relaxed) == 0 || !fence_begin()) return;
    arena_release_fenced(take_out([](const Idle &entry) { return entry.orphan; }));
    fence_end();
}

bool pool_trim() {
    if (!fence_begin()) return false;
    std::vector<Block> blocks = take_out([](const Idle &) { return true; });
    arena_release_fenced(blocks);
    fence_end();
    return !blocks.empty();
}

void pool_context_gone(CUcontext context, std::vector<Block> *blocks) {
    for (const Block &block : take_out(
             [context](const Idle &entry) { return entry.block.context == context || entry.key.context == context; }))
        blocks->push_back(block);
}

void pool_forget() {
    new (&mutex) std::mutex;
    idle = nullptr;
    orphans.store(0);
}

} // namespace foundry
