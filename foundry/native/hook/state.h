// What the hook is doing in this process: mode, arming, role, threads, phases.
#ifndef FOUNDRY_HOOK_STATE_H
#define FOUNDRY_HOOK_STATE_H

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "../abi/spool_format.h"
#include "../table/real.h"

namespace foundry {

// FOUNDRY_MODE_* as the environment asks for it, read once, at the first call that needs it.
int mode();

namespace detail {
extern std::atomic<bool> armed;
extern std::atomic<int> capture_depth;
extern std::atomic<int> scratch_depth;
} // namespace detail

// True from the first successful cuInit on, until disarm(). While false, every call goes to the driver as if unhooked;
// only memory that was placed before is still freed by us.
inline bool armed() {
    return detail::armed.load(std::memory_order_acquire);
}

// FOUNDRY_QUIET=1: nothing is said to whoever started the program.
bool quiet();

// FOUNDRY_RESPOOL=1: a restore tells the spool all that a capture tells.
bool respools();
// Whether the spool is for the packer: in a capture, and in a restore that is compared with one.
bool recording();

// Called after a successful cuInit; makes the spool. Idempotent; false if the hook stays inert.
bool arm();

// For good, with a reason for the status file and the spool. Any thread, any time; only the first reason is kept.
void disarm(const char *reason);
// "" while not disarmed. Lives until the process ends.
const char *disarm_reason();

// Role of this process within its session; "" before arm().
const char *role();
// `<FOUNDRY_SPOOL>/<role>`; "" before arm().
const char *spool_folder();

// Appends `role state reason` to FOUNDRY_STATUS. Silent if there is none.
void status_line(const char *state, const char *reason);

// 0 = the program's thread that called cuInit first, then in order of first use. Stays below 65,535.
uint16_t thread_ordinal();
// Before arm(), by the program's thread that calls cuInit; the first one counts.
void thread_begins();

// Stream captures in progress in this process, whichever thread began them.
inline int capture_depth() {
    return detail::capture_depth.load(std::memory_order_acquire);
}

// Scratch phases in progress. The C interface counts them.
inline int scratch_depth() {
    return detail::scratch_depth.load(std::memory_order_acquire);
}
inline void scratch_begin() {
    detail::scratch_depth.fetch_add(1, std::memory_order_acq_rel);
}
// False if no phase is open.
bool scratch_end();

// Where an allocation made now belongs: capture has precedence over scratch.
inline int current_arena() {
    if (capture_depth() > 0) return FOUNDRY_ARENA_GRAPH;
    return scratch_depth() > 0 ? FOUNDRY_ARENA_SCRATCH : FOUNDRY_ARENA_MAIN;
}

// While one lives, this thread is inside the hook: what the driver looks up through dlsym is answered unchanged.
class Inside {
  public:
    Inside();
    ~Inside();
    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;
};
bool inside_hook();

// The name for the graph that this thread instantiates next. `graph_label_end` answers true if one was instantiated
// since. Strings are copied. False: a label is open already (begin) or none is (end).
bool graph_label_begin(const char *set, const char *key);
bool graph_label_end(bool *used, char *set, size_t set_size, char *key, size_t key_size);

} // namespace foundry

#endif
