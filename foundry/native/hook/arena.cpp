#include "arena.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "../restore/engine.h"
#include "allocators.h"
#include "arena_blocks.h"
#include "arena_range.h"
#include "contents.h"
#include "counters.h"
#include "ipc_exports.h"
#include "ipc_imports.h"
#include "mapping.h"
#include "pool.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

struct State {
    std::map<CUdeviceptr, Block> live;
    std::vector<Block> quarantine;
    std::map<CUdeviceptr, size_t> claims;
    std::map<CUdeviceptr, Block> stand_ins; // by the driver's address: whose place is empty meanwhile
};

std::mutex mutex; // guards state and the placements of all ranges
State *state;
std::atomic<bool> quarantined{false};

// With the lock held.
State &all() {
    if (!state) state = new State;
    return *state;
}

// What is told of a block goes to the spool, and to the restore engine, which compares it with the archive's log.
void tell_allocation(const Block &block) {
    // Who else allocates is for the packer alone: a restored program does not wait for it.
    const bool told_who = block.arena == FOUNDRY_ARENA_MAIN && recording();
    if (told_who) allocator_begins();
    Frame(FOUNDRY_EVENT_ALLOCATION)
        .u64(block.address)
        .u64(block.size)
        .u64(block.taken)
        .u32(block.device)
        .u8(block.arena)
        .u8(block.origin)
        .u64(block.ordinal)
        .write();
    if (told_who) allocator_ended();
    if (mode() == FOUNDRY_MODE_RESTORE && armed()) restore::allocated(block);
}

void tell_free(const Block &block) {
    ipc_block_gone(block);
    Frame(FOUNDRY_EVENT_FREE).u64(block.address).u32(block.device).u8(block.arena).write();
    if (mode() == FOUNDRY_MODE_RESTORE && armed()) restore::freed(block);
}

// Takes a place and maps it, if all went well before. What is not mapped keeps its place.
CUresult place_block(Range &range, Block *block, CUresult before) {
    Place place;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!range.placements[block->arena]->take(block->size, &place)) return CUDA_ERROR_NOT_SUPPORTED;
        block->ordinal = range.ordinals[block->arena]++;
    }
    block->taken = place.taken;
    block->opens = place.opens;
    block->address = range.base + block->arena * range.arena_size + place.offset;
    if (before != CUDA_SUCCESS) return before;
    // Small ones too: the page may have been opened by one that could not map it.
    const CUresult result = map_granules(block->device, block->address / granule_bytes * granule_bytes,
                                         std::max<size_t>(place.taken, granule_bytes));
    if (result != CUDA_SUCCESS) return result;

    std::lock_guard<std::mutex> lock(mutex);
    if (place.opens) range.placements[block->arena]->opened(place);
    all().live[block->address] = *block;
    return CUDA_SUCCESS;
}

Place place_of(const Range &range, const Block &block) {
    return {block.address - range.base - block.arena * range.arena_size, block.taken, block.opens};
}

void quarantine(const Block &block) {
    std::lock_guard<std::mutex> lock(mutex);
    all().quarantine.push_back(block);
    quarantined.store(true, std::memory_order_release);
}

} // namespace

CUresult arena_allocate(uint32_t device, int arena, size_t size, int origin, Block *block) {
    Range *range = range_of_device(device);
    if (!range || arena < 0 || arena >= FOUNDRY_ARENA_COUNT || size == 0) return CUDA_ERROR_NOT_SUPPORTED;
    arena_drain();
    *block = {};
    block->size = size;
    block->device = device;
    block->arena = static_cast<uint8_t>(arena);
    block->origin = static_cast<uint8_t>(origin);
    CUresult result = place_block(*range, block, real.cuCtxGetCurrent(&block->context));
    if (result == CUDA_ERROR_OUT_OF_MEMORY && pool_trim()) {
        arena_undo(*block);
        result = place_block(*range, block, CUDA_SUCCESS);
    }
    if (result != CUDA_SUCCESS) return result;
    count(counters.allocations);
    tell_allocation(*block);
    if (arena == FOUNDRY_ARENA_GRAPH) contents_allocated(*block, true);
    return CUDA_SUCCESS;
}

void arena_stand_in(const Block &block, CUdeviceptr address) {
    Range *range = range_of_address(block.address);
    if (!range) return;
    std::lock_guard<std::mutex> lock(mutex);
    if (block.opens) range->placements[block.arena]->opened(place_of(*range, block));
    all().stand_ins[address] = block;
}

bool arena_stand_in_take(CUdeviceptr address, Block *block) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = all().stand_ins.find(address);
    if (found == all().stand_ins.end()) return false;
    *block = found->second;
    all().stand_ins.erase(found);
    return true;
}

void arena_stand_in_gone(CUdeviceptr address) {
    Block block;
    if (!arena_stand_in_take(address, &block)) return;
    if (capture_depth() > 0)
        quarantine(block);
    else
        arena_release(block);
}

void arena_undo(const Block &block) {
    Range *range = range_of_address(block.address);
    if (!range) return;
    std::lock_guard<std::mutex> lock(mutex);
    range->placements[block.arena]->undo(place_of(*range, block));
    if (range->ordinals[block.arena] == block.ordinal + 1) --range->ordinals[block.arena];
}

CUresult arena_free(CUdeviceptr address) {
    if (!range_of_address(address)) return CUDA_ERROR_NOT_FOUND;
    Block block;
    if (!arena_retire(address, &block)) return CUDA_ERROR_INVALID_VALUE;
    if (!fence_begin()) {
        count(counters.frees_quarantined);
        quarantine(block);
        return CUDA_SUCCESS;
    }
    CUresult error;
    const bool fenced = fence_context(block.context, &error);
    if (fenced)
        arena_release(block);
    else
        quarantine(block);
    fence_end();
    if (fenced) arena_drain();
    return error;
}

bool arena_retire(CUdeviceptr address, Block *block) {
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto found = all().live.find(address);
        if (found == all().live.end()) return false;
        *block = found->second;
        all().live.erase(found);
    }
    count(counters.frees);
    tell_free(*block);
    return true;
}

void arena_revive(Block *block, size_t size, CUcontext context, int origin) {
    Range *range = range_of_address(block->address);
    block->size = size;
    block->context = context;
    block->origin = static_cast<uint8_t>(origin);
    {
        std::lock_guard<std::mutex> lock(mutex);
        block->ordinal = range->ordinals[block->arena]++;
        all().live[block->address] = *block;
    }
    count(counters.allocations);
    tell_allocation(*block);
    if (block->arena == FOUNDRY_ARENA_GRAPH) contents_allocated(*block, false);
}

void arena_release(const Block &block) {
    Range *range = range_of_address(block.address);
    if (!range) return;
    CUdeviceptr start = range->base + block.arena * range->arena_size;
    uint64_t begin, size;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!range->placements[block.arena]->give(block.address - start, block.taken, &begin, &size)) return;
    }
    if (CUresult result = unmap_granules(start + begin, size); result != CUDA_SUCCESS) {
        finding("unmap-failed",
                "%llu bytes at 0x%llx could not be unmapped (CUresult %d); the addresses are not used again",
                static_cast<unsigned long long>(size), static_cast<unsigned long long>(start + begin), result);
        return;
    }
    std::lock_guard<std::mutex> lock(mutex);
    range->placements[block.arena]->released(begin, size);
}

void arena_drain() {
    if (!quarantined.load(std::memory_order_acquire) || capture_depth() > 0) return;
    std::vector<Block> blocks;
    {
        std::lock_guard<std::mutex> lock(mutex);
        blocks.swap(all().quarantine);
        quarantined.store(false, std::memory_order_release);
    }
    if (blocks.empty()) return;
    if (fence_begin()) {
        arena_release_fenced(blocks);
        fence_end();
        return;
    }
    std::lock_guard<std::mutex> lock(mutex);
    all().quarantine.insert(all().quarantine.begin(), blocks.begin(), blocks.end());
    quarantined.store(true, std::memory_order_release);
}

void arena_release_fenced(const std::vector<Block> &blocks) {
    CUresult error;
    std::map<CUcontext, bool> fenced;
    for (const Block &block : blocks)
        if (!fenced.count(block.context)) fenced[block.context] = fence_context(block.context, &error);
    for (const Block &block : blocks)
        if (fenced[block.context])
            arena_release(block);
        else
            quarantine(block);
}

void arena_context_gone(CUcontext context) {
    ipc_context_gone(context);
    std::vector<Block> gone;
    pool_context_gone(context, &gone);
    size_t idle = gone.size();
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto &waiting = all().quarantine;
        for (auto block = waiting.begin(); block != waiting.end();)
            if (block->context == context) {
                gone.push_back(*block);
                block = waiting.erase(block);
            } else {
                ++block;
            }
        std::erase_if(all().stand_ins, [&](const auto &entry) {
            if (entry.second.context == context) gone.push_back(entry.second);
            return entry.second.context == context;
        });
        idle = gone.size();
        for (auto entry = all().live.begin(); entry != all().live.end();)
            if (entry->second.context == context) {
                gone.push_back(entry->second);
                entry = all().live.erase(entry);
            } else {
                ++entry;
            }
    }
    for (size_t index = 0; index < gone.size(); ++index) {
        if (index >= idle) tell_free(gone[index]);
        arena_release(gone[index]);
    }
}

bool arena_claim(uint32_t device, CUdeviceptr address, size_t size) {
    Range *range = range_of_address(address);
    if (!range || range->device != device || size == 0) return false;
    uint64_t arena = (address - range->base) / range->arena_size;
    uint64_t offset = (address - range->base) % range->arena_size;
    if (size > range->arena_size - offset) return false;
    std::lock_guard<std::mutex> lock(mutex);
    if (!range->placements[arena]->claim(offset, size)) return false;
    all().claims[address] = size;
    return true;
}

CUresult arena_map(uint32_t device, CUdeviceptr address, size_t size) {
    Range *range = range_of_address(address);
    if (!range || range->device != device || size == 0 ||
        size > range->base + FOUNDRY_ARENA_COUNT * range->arena_size - address)
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr begin = address / granule_bytes * granule_bytes;
    CUdeviceptr end = (address + size + granule_bytes - 1) / granule_bytes * granule_bytes;
    return map_granules(device, begin, end - begin);
}

bool arena_find(CUdeviceptr address, Block *block) {
    if (!range_of_address(address)) return false;
    std::lock_guard<std::mutex> lock(mutex);
    auto found = all().live.upper_bound(address);
    if (found == all().live.begin()) return false;
    --found;
    if (address - found->first >= found->second.size) return false;
    if (block) *block = found->second;
    return true;
}

bool arena_covers(CUdeviceptr address) {
    return range_of_address(address) != nullptr;
}

bool arena_claimed(CUdeviceptr address) {
    if (!range_of_address(address)) return false;
    std::lock_guard<std::mutex> lock(mutex);
    auto found = all().claims.upper_bound(address);
    return found != all().claims.begin() && address - std::prev(found)->first < std::prev(found)->second;
}

void arena_each(bool (*visit)(const Block &block, void *user), void *user) {
    std::vector<Block> blocks;
    {
        std::lock_guard<std::mutex> lock(mutex);
        for (const auto &[address, block] : all().live) blocks.push_back(block);
    }
    std::stable_sort(blocks.begin(), blocks.end(), [](const Block &a, const Block &b) { return a.device < b.device; });
    for (const Block &block : blocks)
        if (!visit(block, user)) return;
}

uint64_t arena_count(uint32_t device, int arena) {
    Range *range = range_of_device(device);
    if (!range || arena < 0 || arena >= FOUNDRY_ARENA_COUNT) return 0;
    std::lock_guard<std::mutex> lock(mutex);
    return range->ordinals[arena];
}

void arena_forget() {
    new (&mutex) std::mutex;
    state = nullptr;
    quarantined.store(false);
    fence_forget();
    ranges_of_devices_forget();
    mapping_forget();
}

} // namespace foundry
