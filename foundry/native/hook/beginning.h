// How this process began: what decides whether the driver may be made ready before the program asks for it.
#ifndef FOUNDRY_HOOK_BEGINNING_H
#define FOUNDRY_HOOK_BEGINNING_H

#include <string>
#include <vector>

namespace foundry {

using Lines = std::vector<std::string>;

// The strings of a file under /proc, each ended by a zero byte; none if it cannot be read.
Lines strings_of(const char *path);

// Whether this is the process that foundry started, or became: FOUNDRY_COMMAND names it, `self:PID` or `child:PID` of
// foundry's own process. What the command starts is not it; what it replaces itself by is.
bool is_command();

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
