/* What the engine asks of foundry besides its cache of graphs. Without the hook each does nothing or answers 0. */
#ifndef TINYLLM_HOOK_H
#define TINYLLM_HOOK_H

#include <stdint.h>

/* The engine is ready to serve. */
void hook_commit(void);
uint64_t hook_range_base(void);
/* One of the hook's totals. */
uint64_t hook_counter(const char *name);
const char *hook_mode(void); /* "off", "capture" or "restore" */

#endif
