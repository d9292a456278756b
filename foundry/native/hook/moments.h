// When a process got how far on its way to being ready. Told with the counters, as `at_<name>_ns`: nanoseconds since
// the process began, which the kernel knows to 10 ms. Differences of two moments are exact.
//
// To note one costs a read of a clock, and a relaxed load once it is settled. Any thread; no lock, no allocation.
#ifndef FOUNDRY_HOOK_MOMENTS_H
#define FOUNDRY_HOOK_MOMENTS_H

#include <stdint.h>

namespace foundry {

#define FOUNDRY_MOMENTS(X)                                                                                             \
    X(driver_begin)  /* the first cuInit was called */                                                                 \
    X(driver_end)    /* the first one that succeeded came back */                                                      \
    X(first_context) /* the program has a context */                                                                   \
    X(first_image)   /* the program's first kernel image is loaded */                                                  \
    X(first_capture) /* the program's first stream capture has begun */                                                \
    X(first_graph)   /* the program has instantiated its first graph */                                                \
    X(last_graph)    /* the last one so far; once committed, the last one before the commit */                         \
    X(commit)        /* the last foundry_commit */                                                                     \
    X(first_asked)   /* restore: the program asks for a graph */                                                       \
    X(first_handed)  /* restore: it is given one */                                                                    \
    X(last_built)    /* restore: the engine has built its last graph */

enum class Moment {
#define X(name) name,
    FOUNDRY_MOMENTS(X)
#undef X
        count
};

// The first call for a moment counts.
void moment_first(Moment moment);
// The last call for a moment counts.
void moment_last(Moment moment);
// At a commit: settles last_graph, and is itself a moment.
void moments_commit();
// Visits those that have come, in the order above.
void moments_each(void (*visit)(const char *name, uint64_t nanoseconds, void *user), void *user);
// The child of a fork: it has a beginning of its own.
void moments_forget();

} // namespace foundry

#endif
