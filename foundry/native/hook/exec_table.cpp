#include "exec_table.h"

#include <stddef.h>
#include <stdint.h>

#include <atomic>
#include <mutex>
#include <new>

namespace foundry {
namespace {

constexpr size_t slots = size_t{1} << 16;
constexpr size_t most = slots / 4 * 3;
constexpr uint64_t empty = 0, removed = 1;
enum Said : uint8_t { launched = 1, changed = 2 };

std::mutex mutex; // for adding and removing
std::atomic<uint64_t> keys[slots];
std::atomic<uint8_t> said[slots];
size_t used;

size_t first_slot(uint64_t key) {
    return (key * 0x9e3779b97f4a7c15u) >> 48;
}
static_assert(slots == size_t{1} << 16);

// The slot of a key, or `slots`.
size_t find(uint64_t key) {
    size_t slot = first_slot(key);
    for (size_t step = 0; step < slots; ++step, slot = (slot + 1) % slots) {
        uint64_t now = keys[slot].load(std::memory_order_acquire);
        if (now == key) return slot;
        if (now == empty) return slots;
    }
    return slots;
}

bool first_time(CUgraphExec exec, Said what) {
    auto key = reinterpret_cast<uint64_t>(exec);
    if (key <= removed) return false;
    size_t slot = find(key);
    if (slot == slots || (said[slot].load(std::memory_order_relaxed) & what)) return false;
    return !(said[slot].fetch_or(what, std::memory_order_relaxed) & what);
}

} // namespace

bool exec_add(CUgraphExec exec) {
    auto key = reinterpret_cast<uint64_t>(exec);
    if (key <= removed) return false;
    std::lock_guard<std::mutex> lock(mutex);
    size_t known = find(key);
    if (known != slots) {
        said[known].store(0, std::memory_order_relaxed);
        return true;
    }
    if (used >= most) return false;
    size_t slot = first_slot(key);
    while (keys[slot].load(std::memory_order_relaxed) > removed) slot = (slot + 1) % slots;
    said[slot].store(0, std::memory_order_relaxed);
    keys[slot].store(key, std::memory_order_release);
    ++used;
    return true;
}

bool exec_remove(CUgraphExec exec) {
    auto key = reinterpret_cast<uint64_t>(exec);
    if (key <= removed) return false;
    std::lock_guard<std::mutex> lock(mutex);
    size_t slot = find(key);
    if (slot == slots) return false;
    keys[slot].store(removed, std::memory_order_release);
    --used;
    // Marks before an empty slot end no search and can go.
    if (keys[(slot + 1) % slots].load(std::memory_order_relaxed) == empty)
        for (; keys[slot].load(std::memory_order_relaxed) == removed; slot = (slot + slots - 1) % slots)
            keys[slot].store(empty, std::memory_order_release);
    return true;
}

bool exec_first_launch(CUgraphExec exec) {
    return first_time(exec, launched);
}
bool exec_first_change(CUgraphExec exec) {
    return first_time(exec, changed);
}

void execs_forget() {
    new (&mutex) std::mutex;
    for (auto &key : keys)
        if (key.load(std::memory_order_relaxed) != empty) key.store(empty, std::memory_order_relaxed);
    used = 0;
}

} // namespace foundry
