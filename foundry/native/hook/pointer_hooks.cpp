// What the driver says of a pointer, put right where it speaks of a whole mapping and the program means its allocation.
#include <string.h>

#include "../table/call.h"
#include "arena.h"
#include "state.h"

namespace foundry {
namespace {

// Unique among all allocations of the process, and unlike any number that the driver gives.
unsigned long long buffer_number(const Block &block) {
    return 1ull << 62 | static_cast<unsigned long long>(block.device) << 54 |
           static_cast<unsigned long long>(block.arena) << 52 | block.ordinal;
}

// True if the answer for this attribute is ours.
bool answer(const Block &block, CUpointer_attribute attribute, void *data) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        memcpy(data, &block.context, sizeof block.context);
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        memcpy(data, &block.address, sizeof block.address);
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        memcpy(data, &block.size, sizeof block.size);
        return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: {
        unsigned long long number = buffer_number(block);
        memcpy(data, &number, sizeof number);
        return true;
    }
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
    if (result != CUDA_SUCCESS || !arena_covers(dptr)) return result;
    Block block;
    if (arena_find(dptr, &block)) {
        if (pbase) *pbase = block.address;
        if (psize) *psize = block.size;
        return CUDA_SUCCESS;
    }
    return gap(dptr) ? CUDA_ERROR_NOT_FOUND : result;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    CUresult result = DRIVER(cuPointerGetAttribute, data, attribute, ptr);
    if (!data || !arena_covers(ptr)) return result;
    Block block;
    if (arena_find(ptr, &block)) return answer(block, attribute, data) ? CUDA_SUCCESS : result;
    return result == CUDA_SUCCESS && gap(ptr) ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr) {
    CUresult result = DRIVER(cuPointerGetAttributes, numAttributes, attributes, data, ptr);
    Block block;
    if (result != CUDA_SUCCESS || !attributes || !data || !arena_find(ptr, &block)) return result;
    for (unsigned index = 0; index < numAttributes; ++index)
        if (data[index]) answer(block, attributes[index], data[index]);
    return result;
}

} // extern "C"
