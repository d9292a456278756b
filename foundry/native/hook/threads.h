// Threads of the hook's and the restore engine's own.
#ifndef FOUNDRY_HOOK_THREADS_H
#define FOUNDRY_HOOK_THREADS_H

namespace foundry {

// A detached thread that no signal of the program's goes to. Names have up to 15 letters. False: there is none.
bool start_thread(const char *name, void *(*entry)(void *), void *argument);

} // namespace foundry

#endif
