// A process whose restore is given up waits here while its parent decides what becomes of it.
#ifndef FOUNDRY_HOOK_HOLD_H
#define FOUNDRY_HOOK_HOLD_H

namespace foundry {

// FOUNDRY_HOLD is `any`, or how the reasons begin that a parent acts upon; unset: nobody waits. What the program did
// from here on would be done twice if the parent starts it again, and in vain if the parent ends it. The parent ends
// the process in its sleep; a program that handles that signal itself goes on soon after it. Not a launch path.
void hold(const char *reason);

} // namespace foundry

#endif
