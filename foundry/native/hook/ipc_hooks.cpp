// Memory shared between processes by handle. What the hook placed is mapped memory, for which the driver gives no
// handles: the hook gives its own, and opens those of others' hooks. All other handles are the driver's.
#include "../table/call.h"
#include "arena.h"
#include "ipc_exports.h"
#include "ipc_imports.h"
#include "ranges.h"
#include "spool.h"
#include "state.h"

using namespace foundry;

namespace {

size_t range_size(CUdeviceptr address) {
    CUdeviceptr base = 0;
    size_t size = 0;
    if (real.cuMemGetAddressRange_v2) real.cuMemGetAddressRange_v2(&base, &size, address);
    return size;
}

} // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
    Block block;
    // Of stream-ordered memory the driver gives none either, and says so.
    if (!pHandle || !arena_find(dptr, &block) || block.origin == FOUNDRY_ORIGIN_ASYNC)
        return DRIVER(cuIpcGetMemHandle, pHandle, dptr);
    CUdevice device;
    if (CUresult result = DRIVER(cuCtxGetDevice, &device); result != CUDA_SUCCESS) return result;
    IpcHandle handle;
    CUresult exported;
    const char *problem = ipc_export(block, &handle, &exported);
    if (!problem) {
        memcpy(pHandle->reserved, &handle, sizeof handle);
        return CUDA_SUCCESS;
    }
    const CUresult result = DRIVER(cuIpcGetMemHandle, pHandle, dptr);
    finding_once("ipc-refused",
                 "memory that the hook placed could not be shared (CUresult %d, the driver's answer %d): %s", exported,
                 result, problem);
    return result;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    IpcHandle others;
    if (ipc_handle_of(handle, &others)) {
        CUdevice device;
        if (CUresult result = DRIVER(cuCtxGetDevice, &device); result != CUDA_SUCCESS) return result;
        if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
        return ipc_own(others) ? CUDA_ERROR_INVALID_CONTEXT : ipc_open(others, pdptr);
    }
    CUresult result = DRIVER(cuIpcOpenMemHandle_v2, pdptr, handle, Flags);
    if (result != CUDA_SUCCESS || !armed() || !pdptr) return result;
    range_add(FOUNDRY_RANGE_PEER, *pdptr, range_size(*pdptr));
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
    IpcImport found;
    if (ipc_find(dptr, &found)) {
        CUdevice device;
        if (CUresult result = DRIVER(cuCtxGetDevice, &device); result != CUDA_SUCCESS) return result;
        bool ours;
        CUresult result = ipc_close(dptr, &ours);
        if (ours) return result;
    }
    CUresult result = DRIVER(cuIpcCloseMemHandle, dptr);
    if (result == CUDA_SUCCESS && armed()) range_remove(FOUNDRY_RANGE_PEER, dptr);
    return result;
}

// Memory of another process's pool, which is freed as memory of a pool is.
CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData) {
    CUresult result = DRIVER(cuMemPoolImportPointer, ptr_out, pool, shareData);
    if (result == CUDA_SUCCESS && armed() && ptr_out) range_add(FOUNDRY_RANGE_PEER, *ptr_out, range_size(*ptr_out));
    return result;
}

// The program's own memory is none that it mapped, and has no such handle.
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
    const auto address = reinterpret_cast<CUdeviceptr>(addr);
    IpcImport found;
    if (arena_find(address, nullptr) || ipc_find(address, &found)) return CUDA_ERROR_INVALID_VALUE;
    return DRIVER(cuMemRetainAllocationHandle, handle, addr);
}

} // extern "C"
