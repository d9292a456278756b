/* Foundry's C interface (foundry_capi.h), found at run time. Without the hook each call does nothing or answers no. */
#ifndef TINYLLM_HOOK_H
#define TINYLLM_HOOK_H

#include <stdint.h>

/* A restored graph of that name that is built and has that metadata, or NULL: capture it. */
void *hook_find(const char *set, const char *key, const char *metadata);
/* Ends the program if the driver refuses: part of the pass may have run. */
void hook_launch(void *graph, void *stream);

/* A phase that a restore leaves out. */
void hook_scratch_begin(const char *name);
void hook_scratch_end(void);
/* The graph that is instantiated between these two is kept under that name. */
void hook_graph_begin(const char *set, const char *key);
void hook_graph_end(const char *metadata);
void hook_commit(void);

uint64_t hook_range_base(void);
/* One of the hook's totals; 0 without the hook. */
uint64_t hook_counter(const char *name);
/* Adds to a total of the report: warm_ups_run, warm_ups_skipped, captures_run, captures_skipped. */
void hook_count(const char *name, uint64_t add);
const char *hook_mode(void); /* "off", "capture" or "restore" */

#endif
