// What the driver says of a pointer, put right where it speaks of a whole mapping and the program means its allocation.
#include <string.h>

#include "../table/call.h"
#include "arena.h"
#include "ipc_imports.h"
#include "mapping.h"
#include "state.h"

namespace foundry {
namespace {

// Unique among all allocations of the process, and unlike any number that the driver gives.
unsigned long long buffer_number(const Block &block) {
    return 1ull << 62 | static_cast<unsigned long long>(block.device) << 54 |
           static_cast<unsigned long long>(block.arena) << 52 | block.ordinal;
}

template <typename Value> bool put(void *data, Value value) {
    memcpy(data, &value, sizeof value);
    return true;
}

// To the program it is memory that another process shares by a handle of the driver's.
bool answer_of_import(const IpcImport &import, CUpointer_attribute attribute, void *data) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return put(data, import.context);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return put(data, import.address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return put(data, import.size);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return put<uint64_t>(data, 0);
    default:
        return false;
    }
}

// True if the answer for this attribute is ours.
bool answer(const Block &block, CUpointer_attribute attribute, void *data) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return put(data, block.context);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return put(data, block.address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return put(data, block.size);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return put(data, buffer_number(block));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return put<unsigned>(data, block.origin != FOUNDRY_ORIGIN_ASYNC && mapping_exports(block.device));
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return put<uint64_t>(data, 0);
    default:
        return false;
    }
}

// In a page of ours, but in no allocation: to the program this is not memory.
bool gap(CUdeviceptr address) {
    return arena_covers(address) && !arena_find(address, nullptr) && !arena_claimed(address);
}

} // namespace
} // namespace foundry

using namespace foundry;

extern "C" {

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    CUresult result = DRIVER(cuMemGetAddressRange_v2, pbase, psize, dptr);
    if (result != CUDA_SUCCESS) return result;
    Block block;
    IpcImport import;
    if (!arena_covers(dptr)) {
        if (!ipc_find(dptr, &import)) return result;
        block.address = import.address;
        block.size = import.size;
    } else if (!arena_find(dptr, &block)) {
        return gap(dptr) ? CUDA_ERROR_NOT_FOUND : result;
    }
    if (pbase) *pbase = block.address;
    if (psize) *psize = block.size;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    CUresult result = DRIVER(cuPointerGetAttribute, data, attribute, ptr);
    if (!data) return result;
    Block block;
    IpcImport import;
    if (!arena_covers(ptr))
        return ipc_find(ptr, &import) && answer_of_import(import, attribute, data) ? CUDA_SUCCESS : result;
    if (arena_find(ptr, &block)) return answer(block, attribute, data) ? CUDA_SUCCESS : result;
    return result == CUDA_SUCCESS && gap(ptr) ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr) {
    CUresult result = DRIVER(cuPointerGetAttributes, numAttributes, attributes, data, ptr);
    if (result != CUDA_SUCCESS || !attributes || !data) return result;
    Block block;
    IpcImport import;
    const bool covered = arena_covers(ptr);
    if (covered ? !arena_find(ptr, &block) : !ipc_find(ptr, &import)) return result;
    for (unsigned index = 0; index < numAttributes; ++index) {
        if (!data[index]) continue;
        if (covered)
            answer(block, attributes[index], data[index]);
        else
            answer_of_import(import, attributes[index], data[index]);
    }
    return result;
}

} // extern "C"
