// The ends of a process: fork and exit.
//
// A forked child owns neither the parent's spool nor its device memory: it starts as if nothing had happened yet.
#ifndef FOUNDRY_HOOK_PROCESS_H
#define FOUNDRY_HOOK_PROCESS_H

namespace foundry {

// Registers the handlers, once.
void process_watch();

// What each part does in the child. Only the forking thread exists then; locks may have been held by others, and what
// they guarded may be half changed, so both are replaced, never released.
void state_forget();
void pool_forget();
void images_forget();
void recorder_forget();
void ranges_forget();

} // namespace foundry

#endif
