// How this process began: what decides whether the driver may be made ready before the program asks for it.
#ifndef FOUNDRY_HOOK_BEGINNING_H
#define FOUNDRY_HOOK_BEGINNING_H

namespace foundry {

// At the very begin: keeps the variables that the driver reads, and counts forks from here on.
void beginning_note();
// A capture, after the program's first cuInit: counts what a restore must know to begin early (`start_*`).
void beginning_tell();
// Whether a variable that the driver reads is other than at the begin.
bool beginning_changed();
// Runs the program from its begin once more, without an early start. Returns only if that cannot be done.
void begin_again();

} // namespace foundry

#endif
