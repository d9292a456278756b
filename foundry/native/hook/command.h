// How this process was started, as the kernel and foundry tell it.
#ifndef FOUNDRY_HOOK_COMMAND_H
#define FOUNDRY_HOOK_COMMAND_H

#include <stdint.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace foundry {

using Lines = std::vector<std::string>;

// The strings of a file under /proc, each ended by a zero byte; none if it cannot be read.
Lines strings_of(const char *path);

// Whether this is the process that foundry started, or became: FOUNDRY_COMMAND names it, `self:PID` or `child:PID` of
// foundry's own process. What the command starts is not it; what it replaces itself by is.
bool is_command();

// When a process was started, in clock ticks from the boot of the machine; 0 if it has ended, or is not told of.
uint64_t start_of(pid_t process);

} // namespace foundry

#endif
