// How a file descriptor gets from the process that has memory to the one that opens it: a socket without a place in the
// file system, whose name only the handle tells, and a thread that answers. Both sides accept their own user only.
#ifndef FOUNDRY_HOOK_IPC_SOCKET_H
#define FOUNDRY_HOOK_IPC_SOCKET_H

#include <vector>

#include "ipc_exports.h"

namespace foundry {

// Begins to answer for this process, once. Not null: what stands against it.
const char *ipc_listen(const uint8_t process[16]);

// Asks the owner; waits no longer than patience allows. Null: *answer is one of an allocation that is known, *files has
// a descriptor a piece, for the caller to close. Else what went wrong, and *result is what a driver says of it.
const char *ipc_ask(const IpcHandle &handle, IpcAnswer *answer, std::vector<int> *files, CUresult *result);

void ipc_socket_forget();

} // namespace foundry

#endif
