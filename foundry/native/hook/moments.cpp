#include "moments.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "command.h"

namespace foundry {
namespace {

constexpr unsigned moment_count = static_cast<unsigned>(Moment::count);

constexpr const char *names[] = {
#define X(name) "at_" #name "_ns",
    FOUNDRY_MOMENTS(X)
#undef X
};

std::atomic<uint64_t> times[moment_count]; // since the boot; 0 = has not come
std::atomic<uint64_t> graph_at_commit{0};

// The clock that process starts are told in: it goes on while the machine sleeps.
uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

std::atomic<uint64_t> &slot(Moment moment) {
    return times[static_cast<unsigned>(moment)];
}

// 0 if the system does not tell.
uint64_t process_start() {
    const long ticks = sysconf(_SC_CLK_TCK);
    return ticks > 0 ? start_of(getpid()) * (1000000000u / static_cast<uint64_t>(ticks)) : 0;
}

} // namespace

void moment_first(Moment moment) {
    std::atomic<uint64_t> &time = slot(moment);
    uint64_t none = time.load(std::memory_order_relaxed);
    if (!none) time.compare_exchange_strong(none, now(), std::memory_order_relaxed);
}

void moment_last(Moment moment) {
    slot(moment).store(now(), std::memory_order_relaxed);
}

void moments_commit() {
    graph_at_commit.store(slot(Moment::last_graph).load(std::memory_order_relaxed), std::memory_order_relaxed);
    moment_last(Moment::commit);
}

void moments_each(void (*visit)(const char *name, uint64_t nanoseconds, void *user), void *user) {
    uint64_t seen[moment_count], first = ~uint64_t{0};
    for (unsigned index = 0; index < moment_count; ++index) {
        seen[index] = times[index].load(std::memory_order_relaxed);
        if (seen[index]) first = std::min(first, seen[index]);
    }
    if (seen[static_cast<unsigned>(Moment::commit)])
        seen[static_cast<unsigned>(Moment::last_graph)] = graph_at_commit.load(std::memory_order_relaxed);
    // Where the system tells no start, or one that cannot be, the first moment stands for it.
    const uint64_t told = process_start(), start = told && told <= first ? told : first;
    for (unsigned index = 0; index < moment_count; ++index)
        if (seen[index]) visit(names[index], seen[index] - start, user);
}

void moments_forget() {
    for (std::atomic<uint64_t> &time : times) time.store(0, std::memory_order_relaxed);
    graph_at_commit.store(0, std::memory_order_relaxed);
}

} // namespace foundry
