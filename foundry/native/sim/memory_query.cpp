// What the driver tells about an address.
#include "regions.h"

#include <cstring>

namespace sim {
namespace {

template <class Value> void put(void *data, Value value) {
    std::memcpy(data, &value, sizeof value);
}

bool is_host(const Region &region) {
    return region.kind == RegionKind::pinned || region.kind == RegionKind::registered;
}

// Writes nothing for an attribute that does not apply.
CUresult attribute_of(void *data, CUpointer_attribute attribute, const Region &region, CUdeviceptr pointer) {
    switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        if (!region.context) return CUDA_ERROR_INVALID_VALUE;
        put(data, region.context);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put<unsigned>(data, is_host(region) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        put(data, pointer);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host(region) && region.kind != RegionKind::managed) return CUDA_ERROR_INVALID_VALUE;
        put(data, pointer);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        put<unsigned>(data, region.sync_memops);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        put(data, region.buffer_id);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        put<unsigned>(data, region.kind == RegionKind::managed);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put(data, region.device);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        put<unsigned>(data, region.kind == RegionKind::device);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        put(data, region.base);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        put(data, static_cast<std::size_t>(region.size));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        put<unsigned>(data, 1);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put<unsigned long long>(data, 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        put<unsigned>(data, 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put<unsigned>(data, region.kind == RegionKind::mapped && region.access.empty()
                                ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                : CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        put(data, region.pool);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        put(data, region.buffer_id);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

} // namespace
} // namespace sim

using sim::Context;
using sim::Region;
using sim::RegionKind;

CUresult sim::cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Region *region = region_at(dptr);
    if (!region) return CUDA_ERROR_NOT_FOUND;
    if (pbase) *pbase = region->base;
    if (psize) *psize = region->size;
    return CUDA_SUCCESS;
}

CUresult sim::cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!data) return CUDA_ERROR_INVALID_VALUE;
    Region *region = region_at(ptr);
    return region ? attribute_of(data, attribute, *region, ptr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                     CUdeviceptr ptr) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!attributes || !data || numAttributes == 0) return CUDA_ERROR_INVALID_VALUE;
    Region *region = region_at(ptr);
    for (unsigned index = 0; index < numAttributes; ++index) {
        if (region && attribute_of(data[index], attributes[index], *region, ptr) == CUDA_SUCCESS) continue;
        // Unlike the single query, an unknown pointer is no error here: each value becomes its null.
        switch (attributes[index]) {
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            put(data[index], -2);
            break;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            put<unsigned>(data[index], 0);
            break;
        default:
            put<std::uint64_t>(data[index], 0);
            break;
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim::cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Region *region = region_at(ptr);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !region) return CUDA_ERROR_INVALID_VALUE;
    if (region->kind == RegionKind::mapped) return CUDA_ERROR_NOT_SUPPORTED;
    unsigned flag = 0;
    std::memcpy(&flag, value, sizeof flag);
    region->sync_memops = flag != 0;
    return CUDA_SUCCESS;
}
