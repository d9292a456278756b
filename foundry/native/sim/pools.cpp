// Memory pools, and allocation in the order of a stream.
#include "pools.h"

#include "backing.h"
#include "capture.h"
#include "graph_memory.h"
#include "memory.h"

#include <algorithm>
#include <cstring>

namespace sim {

Table<CUmemoryPool, Pool> &pools() {
    static auto *all = new Table<CUmemoryPool, Pool>;
    return *all;
}

namespace {

CUresult known_pool(CUmemoryPool handle, Pool **pool) {
    *pool = pools().find(handle);
    return *pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult allocate_on(CUdeviceptr *address, std::size_t size, CUmemoryPool pool_handle, CUstream stream_handle) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(stream_handle, &stream));
    if (!address || size == 0) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(refuse_implicit(*stream));
    Pool *pool = find_device(stream->device)->pool.get();
    if (pool_handle) SIM_TRY(known_pool(pool_handle, &pool));
    if (!stream->capture) return take_pool_memory(*pool, size, stream->context, address);
    MemAllocPayload payload;
    payload.allocation.poolProps = pool->properties;
    payload.allocation.bytesize = size;
    SIM_TRY(make_memory(pool->device, size, &payload.memory));
    *address = payload.allocation.dptr = payload.memory->address;
    return submit(*stream, payload);
}

} // namespace

std::shared_ptr<Pool> make_pool(int device) {
    auto pool = std::make_shared<Pool>();
    pool->device = device;
    pool->is_default = true;
    pool->properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    pool->properties.location.id = device;
    pools().add(pool);
    return pool;
}

Pool *find_pool(CUmemoryPool pool) {
    return pools().find(pool);
}

CUresult take_pool_memory(Pool &pool, std::uint64_t size, CUcontext context, CUdeviceptr *address) {
    if (pool.properties.maxSize &&
        size > pool.properties.maxSize - std::min<std::uint64_t>(pool.used, pool.properties.maxSize))
        return CUDA_ERROR_OUT_OF_MEMORY;
    std::uint64_t base = 0;
    SIM_TRY(take_backing(*find_device(pool.device), size, &base));
    Region region;
    region.base = base;
    region.size = size;
    region.kind = RegionKind::pool;
    region.device = pool.device;
    region.context = context;
    region.pool = pool.handle;
    add_region(region);
    pool.used += size;
    pool.used_high = std::max(pool.used_high, pool.used);
    *address = base;
    return CUDA_SUCCESS;
}

} // namespace sim

using sim::Device;
using sim::find_device;
using sim::Pool;
using sim::Stream;

CUresult sim::cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    return allocate_on(dptr, bytesize, nullptr, hStream);
}

CUresult sim::cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
    return pool ? allocate_on(dptr, bytesize, pool, hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    SIM_TRY(refuse_implicit(*stream));
    if (!dptr) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture) return submit(*stream, MemFreePayload{dptr});
    return graph_memory_live(dptr) ? end_memory(dptr) : free_region(dptr);
}

CUresult sim::cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
    Device *device = find_device(dev);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!pool_out) return CUDA_ERROR_INVALID_VALUE;
    *pool_out = device->default_pool->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    Device *device = find_device(dev);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    *pool = device->pool->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle) {
    Device *device = find_device(dev);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    std::shared_ptr<Pool> pool = pools().share(handle);
    if (!pool || pool->device != dev) return CUDA_ERROR_INVALID_VALUE;
    device->pool = pool;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *poolProps) {
    if (!handle || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!find_device(poolProps->location.id)) return CUDA_ERROR_INVALID_DEVICE;
    std::shared_ptr<Pool> pool = make_pool(poolProps->location.id);
    pool->is_default = false;
    pool->properties = *poolProps;
    *handle = pool->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemPoolDestroy(CUmemoryPool handle) {
    std::shared_ptr<Pool> pool = pools().share(handle);
    if (!pool || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
    Device &device = *find_device(pool->device);
    if (device.pool == pool) device.pool = device.default_pool;
    pools().remove(handle); // what was allocated from it stays until it is freed
    return CUDA_SUCCESS;
}

CUresult sim::cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
    Pool *pool = nullptr;
    return known_pool(handle, &pool);
}

CUresult sim::cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value) {
    Pool *pool = nullptr;
    SIM_TRY(known_pool(handle, &pool));
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    auto *number = static_cast<cuuint64_t *>(value);
    switch (static_cast<int>(attr)) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *static_cast<int *>(value) = pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *number = pool->release_threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *number = pool->used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *number = pool->used_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sim::cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value) {
    Pool *pool = nullptr;
    SIM_TRY(known_pool(handle, &pool));
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    switch (static_cast<int>(attr)) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *static_cast<int *>(value);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->release_threshold = *static_cast<cuuint64_t *>(value);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*static_cast<cuuint64_t *>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
        pool->used_high = pool->used;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sim::cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count) {
    Pool *pool = nullptr;
    SIM_TRY(known_pool(handle, &pool));
    for (std::size_t index = 0; index < count; ++index) {
        if (!map || map[index].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !find_device(map[index].location.id))
            return CUDA_ERROR_INVALID_VALUE;
        pool->access[map[index].location.id] = map[index].flags;
    }
    return CUDA_SUCCESS;
}

CUresult sim::cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location) {
    Pool *pool = nullptr;
    SIM_TRY(known_pool(memPool, &pool));
    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || !find_device(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    auto set = pool->access.find(location->id);
    *flags = set != pool->access.end()      ? set->second
             : location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                            : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult sim::cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    if (!find_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<cuuint64_t *>(value) = graph_memory_used(device, attr <= CU_GRAPH_MEM_ATTR_USED_MEM_HIGH);
    return CUDA_SUCCESS;
}

CUresult sim::cuDeviceGraphMemTrim(CUdevice device) {
    return find_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
