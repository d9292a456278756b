// What stands in the 64 bytes of a handle that the hook gives for memory that it placed. The driver's own begin
// otherwise.
#ifndef FOUNDRY_HOOK_IPC_HANDLE_H
#define FOUNDRY_HOOK_IPC_HANDLE_H

#include <stdint.h>
#include <string.h>

#include "../table/real.h"

namespace foundry {

struct IpcHandle {
    char magic[8];
    uint8_t process[16]; // drawn by lot once a process: who has the memory, and where to ask
    uint64_t allocation; // drawn by lot once an allocation
    uint64_t size;
    uint8_t unused[24];
};
static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle));

constexpr char ipc_magic[8] = {'F', 'D', 'R', 'Y', 'I', 'P', 'C', '1'};

// False: the handle is the driver's.
inline bool ipc_handle_of(const CUipcMemHandle &bytes, IpcHandle *handle) {
    memcpy(handle, bytes.reserved, sizeof *handle);
    return memcmp(handle->magic, ipc_magic, sizeof ipc_magic) == 0;
}

inline bool operator==(const IpcHandle &left, const IpcHandle &right) {
    return memcmp(&left, &right, sizeof left) == 0;
}

} // namespace foundry

#endif
