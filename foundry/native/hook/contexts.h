// Contexts of the process.
#ifndef FOUNDRY_HOOK_CONTEXTS_H
#define FOUNDRY_HOOK_CONTEXTS_H

#include "../table/real.h"

namespace foundry {

// After any call that gave a usable context; only the first time for each counts.
void context_ready(CUcontext context, CUdevice device, bool primary);
void contexts_forget();

} // namespace foundry

#endif
