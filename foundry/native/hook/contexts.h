// Contexts of the process.
#ifndef FOUNDRY_HOOK_CONTEXTS_H
#define FOUNDRY_HOOK_CONTEXTS_H

#include "../table/real.h"

namespace foundry {

// After any call that gave a usable context; only the first time for each counts.
void context_ready(CUcontext context, CUdevice device, bool primary);
// The same for a primary context that the program did not ask for: the restore may use it, nobody else hears of it.
void context_before_program(CUcontext context, CUdevice device);
void contexts_forget();

} // namespace foundry

#endif
