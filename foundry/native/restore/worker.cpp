// The background threads: everything that graphs need, in the order of their first use, while the program imports and
// loads.
#include <chrono>

#include "../abi/spool_format.h"
#include "../hook/state.h"
#include "../hook/threads.h"
#include "session.h"

namespace foundry::restore {
namespace {

constexpr std::chrono::seconds longest_goodbye{1};
constexpr unsigned workers = 2; // drivers build and instantiate no faster on more

} // namespace

// Without a thread, each graph is built when it is asked for.
void Session::start_workers() {
    unsigned first;
    {
        std::lock_guard<std::mutex> lock(mutex);
        wakes_++;
        changed.notify_all();
        first = workers_started_;
        workers_started_ = workers;
        workers_running_ += workers - first;
    }
    for (unsigned at = first; at < workers; at++) {
        if (start_thread("foundry-restore", worker_entry, this)) continue;
        std::lock_guard<std::mutex> lock(mutex);
        workers_running_--;
    }
}

void Session::wake_workers() {
    std::lock_guard<std::mutex> lock(mutex);
    wakes_++;
    changed.notify_all();
}

bool Session::stop_workers() {
    std::unique_lock<std::mutex> lock(mutex);
    stop_ = true;
    changed.notify_all();
    return changed.wait_for(lock, longest_goodbye, [&] { return !workers_running_; });
}

// Driver calls of the background would make a graph wait that is asked for before its turn.
bool Session::next_turn() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return !ahead || stop_; });
    return !stop_ && armed();
}

bool Session::is_ahead(uint32_t graph) const {
    unsigned before = 0;
    for (uint32_t other : graph_order) {
        if (other == graph) return false;
        if (graphs[other].work == Work::idle && ++before > workers) return true;
    }
    return false;
}

void *Session::worker_entry(void *self) {
    Session &session = *static_cast<Session *>(self);
    Inside inside;
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(session.mutex);
    for (;;) {
        session.changed.wait(lock, [&] { return session.wakes_ != seen || session.stop_; });
        seen = session.wakes_;
        if (session.stop_ || !armed()) break;
        if (!session.workers_busy_++) session.busy_since_ = nanoseconds_now();
        lock.unlock();
        session.work_through();
        lock.lock();
        const uint64_t so_far = session.background_so_far();
        if (!--session.workers_busy_) session.times.background = so_far;
    }
    session.workers_running_--;
    session.changed.notify_all();
    return nullptr;
}

uint64_t Session::background_so_far() const {
    return times.background + (workers_busy_ ? nanoseconds_now() - busy_since_ : 0);
}

void Session::memory_pass() {
    for (const DeviceState &state : devices) {
        if (!next_turn()) return;
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (state.memory != Work::idle) continue;
        }
        Borrowed borrowed_context(*this, state.ordinal);
        if (borrowed_context.context()) ensure_memory(state.ordinal, borrowed_context.context());
    }
}

void Session::image_pass(bool in_graphs) {
    for (uint32_t at : image_order) {
        if (!next_turn()) return;
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (images[at].in_graphs != in_graphs || images[at].work != Work::idle) continue;
        }
        if (image->images()[at].api == FOUNDRY_API_LIBRARY) {
            ensure_image(at);
            continue;
        }
        Borrowed borrowed_context(*this, image->images()[at].device, images[at].context_ordinal);
        if (!borrowed_context.context()) continue;
        Entered entered(borrowed_context.context());
        if (!entered.result()) ensure_image(at);
    }
}

void Session::kernel_pass(bool in_graphs) {
    for (uint32_t kernel : kernel_order) {
        if (!next_turn()) return;
        const uint32_t of = image_of(kernel);
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (images[of].in_graphs != in_graphs || kernels[kernel].work != Work::idle) continue;
        }
        Borrowed borrowed_context(*this, image->kernels()[kernel].device, images[of].context_ordinal);
        if (!borrowed_context.context()) continue;
        Entered entered(borrowed_context.context());
        if (!entered.result()) ensure_kernel(kernel);
    }
}

// What is done, or in another thread's hands, costs a look. Whatever fails keeps its reason for the graph that needs
// it.
void Session::work_through() {
    memory_pass();
    image_pass(true);
    kernel_pass(true);
    uint32_t waiting = 0;
    for (uint32_t graph : graph_order) {
        if (!next_turn()) return;
        if (!build_if_possible(graph)) waiting++;
    }
    postponed = waiting;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!context_seen) return;
    }
    kernel_pass(false);
    image_pass(false);
}

} // namespace foundry::restore
