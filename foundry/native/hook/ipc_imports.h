// Memory that other processes' hooks placed, opened here.
#ifndef FOUNDRY_HOOK_IPC_IMPORTS_H
#define FOUNDRY_HOOK_IPC_IMPORTS_H

#include "ipc_handle.h"

namespace foundry {

struct IpcImport {
    CUdeviceptr address; // of the other's allocation, here
    size_t size;
    CUcontext context; // that opened it
};

// Opens it for the current context and its device; again, it gives the same address and counts. A driver's error, or as
// a driver CUDA_ERROR_INVALID_HANDLE where the owner is not there any more, CUDA_ERROR_INVALID_VALUE where it has freed
// the memory; CUDA_ERROR_MAP_FAILED where it does not answer.
CUresult ipc_open(const IpcHandle &handle, CUdeviceptr *address);

// *ours = false: not opened here. At the last close the memory is unmapped when the work of its context has ended;
// while a capture is in progress, which must not be waited in, at a later call.
CUresult ipc_close(CUdeviceptr address, bool *ours);

// What is open and holds the address.
bool ipc_find(CUdeviceptr address, IpcImport *found);

// All that a context opened, after it is gone.
void ipc_context_gone(CUcontext context);

void ipc_imports_forget();

} // namespace foundry

#endif
