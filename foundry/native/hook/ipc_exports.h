// Memory of this process that others may open.
#ifndef FOUNDRY_HOOK_IPC_EXPORTS_H
#define FOUNDRY_HOOK_IPC_EXPORTS_H

#include "arena.h"
#include "ipc_handle.h"

namespace foundry {

constexpr uint32_t most_ipc_pieces = 64;

// What an owner says of an allocation that is asked for; a file descriptor a piece comes with it.
struct IpcAnswer {
    uint32_t known;  // 0: there is no such allocation, or no more
    uint32_t pieces; // of physical memory; the allocation lies in all of them
    uint64_t offset; // of it in the first one
    uint64_t sizes[most_ipc_pieces];
    uint32_t device; // the owner's numbers
    uint32_t arena;
    uint64_t ordinal;
    char role[256]; // the owner's
};

// The handle of a live block, the same one each time. The physical memory is exported at the first call. Else *result
// is the driver's error, or CUDA_SUCCESS where it was not asked, and the answer says what stood against it.
const char *ipc_export(const Block &block, IpcHandle *handle, CUresult *result);

// The block is freed: no one may open it any more. Whoever did keeps the memory.
void ipc_block_gone(const Block &block);

// Sends the answer and the files through a connected socket. Makes no driver call.
void ipc_send(int connection, const IpcHandle &handle);

// Which handles are this process's own. False: none were made.
bool ipc_own(const IpcHandle &handle);

void ipc_exports_forget();

} // namespace foundry

#endif
