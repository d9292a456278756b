#include <sched.h>
#include <time.h>

#include <atomic>

#include "arena_blocks.h"
#include "counters.h"
#include "state.h"

namespace foundry {
namespace {

// Synchronising a context invalidates every capture in progress on it. So a fence announces itself before it looks for
// captures, and a capture announces itself before it looks for fences: one of the two always sees the other.
std::atomic<int> fences{0};

// Who reads memory of a live block needs it to stay mapped: meanwhile nobody fences, and what is freed waits in
// quarantine. Announced before it looks for fences, as these look for it.
std::atomic<int> stills{0};

// A fence may wait for a kernel that waits for the thread that begins the capture; then the driver's own answer must
// do.
constexpr int64_t patience_nanoseconds = 2'000'000'000;

int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

bool wait_for_fences() {
    if (fences.load(std::memory_order_seq_cst) == 0) return true;
    int64_t until = now() + patience_nanoseconds;
    while (fences.load(std::memory_order_seq_cst) != 0)
        if (now() >= until || sched_yield()) return false;
    return true;
}

} // namespace

bool fence_begin() {
    fences.fetch_add(1, std::memory_order_seq_cst);
    if (detail::capture_depth.load(std::memory_order_seq_cst) == 0 && stills.load(std::memory_order_seq_cst) == 0)
        return true;
    fences.fetch_sub(1, std::memory_order_seq_cst);
    return false;
}

void fence_end() {
    fences.fetch_sub(1, std::memory_order_seq_cst);
}

bool still_begin() {
    stills.fetch_add(1, std::memory_order_seq_cst);
    if (wait_for_fences()) {
        fences.fetch_add(1, std::memory_order_seq_cst);
        if (detail::capture_depth.load(std::memory_order_seq_cst) == 0) return true;
        fences.fetch_sub(1, std::memory_order_seq_cst);
    }
    stills.fetch_sub(1, std::memory_order_seq_cst);
    return false;
}

void still_end() {
    fences.fetch_sub(1, std::memory_order_seq_cst);
    stills.fetch_sub(1, std::memory_order_seq_cst);
}

void capture_begun() {
    detail::capture_depth.fetch_add(1, std::memory_order_seq_cst);
    wait_for_fences();
}

void capture_ended() {
    detail::capture_depth.fetch_sub(1, std::memory_order_seq_cst);
}

void fence_forget() {
    fences.store(0);
    stills.store(0);
}

bool fence_context(CUcontext context, CUresult *error) {
    *error = CUDA_SUCCESS;
    CUcontext current = nullptr;
    real.cuCtxGetCurrent(&current);
    if (!context) context = current;
    if (!context) return true;
    count(counters.fences);
    if (current != context) {
        CUresult pushed = real.cuCtxPushCurrent_v2(context);
        if (pushed == CUDA_ERROR_INVALID_CONTEXT || pushed == CUDA_ERROR_CONTEXT_IS_DESTROYED) return true;
        if (pushed != CUDA_SUCCESS) return false;
    }
    *error = real.cuCtxSynchronize();
    CUcontext popped;
    if (current != context) real.cuCtxPopCurrent_v2(&popped);
    return *error == CUDA_SUCCESS;
}

} // namespace foundry
