// Totals for the report. Relaxed atomics: exact when the threads that count are quiet.
#ifndef FOUNDRY_HOOK_COUNTERS_H
#define FOUNDRY_HOOK_COUNTERS_H

#include <stdint.h>

#include <atomic>

namespace foundry {

#define FOUNDRY_COUNTERS(X)                                                                                            \
    X(kernel_launches)        /* calls of cuLaunchKernel, cuLaunchKernelEx, cuLaunchCooperativeKernel */               \
    X(graph_launches)         /* calls of cuGraphLaunch by the program */                                              \
    X(stream_captures)        /* captures begun */                                                                     \
    X(captures_failed)        /* captures that ended in an error */                                                    \
    X(graphs_instantiated)    /* by the program, successfully */                                                       \
    X(graphs_recorded)        /* written to the spool */                                                               \
    X(graph_updates)          /* cuGraphExecUpdate and Exec*SetParams, successful */                                   \
    X(module_loads)           /* cuModuleLoad*, successful */                                                          \
    X(library_loads)          /* cuLibraryLoad*, successful */                                                         \
    X(images_handed_over)     /* of those, answered from the archive's copy */                                         \
    X(kernel_attribute_calls) /* cuKernelSetAttribute, cuFuncSetAttribute, cache configs */                            \
    X(allocations)            /* served from an arena */                                                               \
    X(frees)                  /* of those */                                                                           \
    X(allocations_reused)     /* stream-ordered ones served from an idle block */                                      \
    X(allocations_outside)    /* that the driver served because the hook could not */                                  \
    X(allocations_captured)   /* stream-ordered ones that became graph nodes */                                        \
    X(frees_quarantined)      /* that waited for the end of a capture */                                               \
    X(fences)                 /* context synchronisations before an unmap */                                           \
    X(contexts)               /* retained for the first time, or created */                                            \
    X(events_created)                                                                                                  \
    X(export_tables)     /* cuGetExportTable: private tables that no list covers */                                    \
    X(doors_dlsym)       /* look-ups answered with a hook */                                                           \
    X(doors_entry_point) /* cuGetProcAddress answers replaced */

struct Counters {
#define X(name) std::atomic<uint64_t> name;
    FOUNDRY_COUNTERS(X)
#undef X
};

extern Counters counters;

inline void count(std::atomic<uint64_t> &counter, uint64_t add = 1) {
    counter.fetch_add(add, std::memory_order_relaxed);
}

// Named totals of adapters and of the restore engine; made on first use, at most 256, names up to 63 bytes. Any thread.
void count_named(const char *name, uint64_t add);
// The hook's own or a named one; 0 if there is none.
uint64_t counter_value(const char *name);
// All to zero, in the child of a fork.
void counters_forget();
// Visits all of them, the hook's own first, each group in a fixed order.
void counters_each(void (*visit)(const char *name, uint64_t value, void *user), void *user);

} // namespace foundry

#endif
