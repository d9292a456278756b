// The early start of a restore: the driver, the primary contexts, and with them the restore engine, behind what the
// program does before it asks for them (a Python program imports). Only in a process whose capture showed that nothing
// stands against it; `foundry restore` says so in FOUNDRY_EARLY, with the devices.
//
// To the program the driver is as it would be: what it did not ask for is taken as not there.
#ifndef FOUNDRY_HOOK_EARLY_H
#define FOUNDRY_HOOK_EARLY_H

#include "../table/real.h"

namespace foundry {

// Before the program's main: notes how the process began, and begins early where that is asked for.
void program_begins();

// Before the program's own cuInit: waits until the driver is initialised, where that is under way. Where variables that
// the driver reads were changed meanwhile, the program begins again without an early start.
void early_wait_driver();
// Before the program takes a primary context: waits until the early start has ended.
void early_wait_end();
// Whether the primary context of a device is there only because of the early start.
bool early_holds(CUdevice device);
// After the program took the primary context itself.
void early_let_go(CUdevice device);
// Whether there was an early start.
bool early_started();
// At exit: nothing new is begun, and what is under way ends, unless it takes too long.
void early_leave();
// Whether the end of the process has begun.
bool early_leaves();

} // namespace foundry

#endif
