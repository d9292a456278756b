#include "patience.h"

#include <sched.h>
#include <stdlib.h>

#include <atomic>

namespace foundry {
namespace {

constexpr int usual_milliseconds = 60'000;
constexpr double longest_seconds = 86'400;

int read_patience() {
    const char *text = getenv("FOUNDRY_PATIENCE");
    const double seconds = text ? strtod(text, nullptr) : 0;
    return seconds >= 0.001 && seconds <= longest_seconds ? static_cast<int>(seconds * 1000) : usual_milliseconds;
}

} // namespace

std::chrono::milliseconds patience() {
    static std::atomic<int> known{0};
    int now = known.load(std::memory_order_relaxed);
    if (!now) known.store(now = read_patience(), std::memory_order_relaxed);
    return std::chrono::milliseconds(now);
}

bool Turns::next() {
    if (std::chrono::steady_clock::now() >= until_) return false;
    sched_yield();
    return true;
}

} // namespace foundry
