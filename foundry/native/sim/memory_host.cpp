// Pinned and registered host memory. A device uses it at its host address.
#include "backing.h"
#include "capture.h"
#include "regions.h"

namespace sim {
namespace {

CUresult allocate_host(void **address, std::uint64_t size, unsigned flags) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!address || size == 0 ||
        (flags & ~(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)))
        return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(refuse_unsafe());
    void *pages = take_pages(size);
    if (!pages) return CUDA_ERROR_OUT_OF_MEMORY;
    Region region;
    region.base = reinterpret_cast<std::uint64_t>(pages);
    region.size = size;
    region.kind = RegionKind::pinned;
    region.device = context->device;
    region.context = context->handle;
    region.flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
    add_region(region);
    *address = pages;
    return CUDA_SUCCESS;
}

bool overlaps_known(std::uint64_t address, std::uint64_t size) {
    auto next = regions().lower_bound(address);
    return region_at(address) || (next != regions().end() && next->first < address + size);
}

} // namespace
} // namespace sim

using sim::Context;
using sim::Region;
using sim::RegionKind;

CUresult sim::cuMemAllocHost_v2(void **pp, size_t bytesize) {
    return allocate_host(pp, bytesize, 0);
}

CUresult sim::cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
    return allocate_host(pp, bytesize, Flags);
}

CUresult sim::cuMemFreeHost(void *p) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    SIM_TRY(refuse_unsafe());
    Region *region = region_at(reinterpret_cast<std::uint64_t>(p));
    if (!region || region->kind != RegionKind::pinned || region->base != reinterpret_cast<std::uint64_t>(p))
        return CUDA_ERROR_INVALID_VALUE;
    give_back_pages(p, region->size);
    remove_region(region->base);
    return CUDA_SUCCESS;
}

CUresult sim::cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!p || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(refuse_unsafe());
    if (overlaps_known(reinterpret_cast<std::uint64_t>(p), bytesize)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    Region region;
    region.base = reinterpret_cast<std::uint64_t>(p);
    region.size = bytesize;
    region.kind = RegionKind::registered;
    region.device = context->device;
    region.context = context->handle;
    region.flags = Flags;
    add_region(region);
    return CUDA_SUCCESS;
}

CUresult sim::cuMemHostUnregister(void *p) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    SIM_TRY(refuse_unsafe());
    Region *region = region_at(reinterpret_cast<std::uint64_t>(p));
    if (!region || region->kind != RegionKind::registered || region->base != reinterpret_cast<std::uint64_t>(p))
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    remove_region(region->base);
    return CUDA_SUCCESS;
}

CUresult sim::cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Region *region = region_at(reinterpret_cast<std::uint64_t>(p));
    if (!pdptr || Flags != 0 || !region ||
        (region->kind != RegionKind::pinned && region->kind != RegionKind::registered))
        return CUDA_ERROR_INVALID_VALUE;
    *pdptr = reinterpret_cast<CUdeviceptr>(p);
    return CUDA_SUCCESS;
}

CUresult sim::cuMemHostGetFlags(unsigned int *pFlags, void *p) {
    Region *region = region_at(reinterpret_cast<std::uint64_t>(p));
    if (!pFlags || !region || region->kind != RegionKind::pinned) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = region->flags;
    return CUDA_SUCCESS;
}
