// Reserving addresses, and mapping physical memory on them.
#include "physical.h"
#include "regions.h"

#include <algorithm>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace sim {

std::map<std::uint64_t, std::uint64_t> &reservations() {
    static auto *all = new std::map<std::uint64_t, std::uint64_t>;
    return *all;
}

namespace {

// The reservation that holds all of the range; reservations that touch do not join.
bool reserved(std::uint64_t address, std::uint64_t size) {
    auto next = reservations().upper_bound(address);
    if (next == reservations().begin()) return false;
    auto [base, length] = *std::prev(next);
    return address - base < length && size <= base + length - address;
}

// The mappings that make up exactly the range, or nothing.
std::vector<Region *> mappings_of(std::uint64_t address, std::uint64_t size) {
    std::vector<Region *> found;
    std::uint64_t end = address + size;
    while (address < end) {
        Region *region = region_at(address);
        if (!region || region->kind != RegionKind::mapped || region->base != address || region->size > end - address)
            return {};
        found.push_back(region);
        address += region->size;
    }
    return found;
}

bool any_region(std::uint64_t address, std::uint64_t size) {
    auto next = regions().lower_bound(address);
    return region_at(address) || (next != regions().end() && next->first < address + size);
}

void *hold_addresses(void *address, std::uint64_t size, int placement) {
    return mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | placement, -1, 0);
}

std::uint64_t reserve_at(std::uint64_t address, std::uint64_t size) {
    void *wanted = reinterpret_cast<void *>(address);
    void *got = hold_addresses(wanted, size, MAP_FIXED_NOREPLACE);
    if (got == wanted) return address;
    if (got != MAP_FAILED) munmap(got, size);
    return 0;
}

std::uint64_t reserve_anywhere(std::uint64_t size, std::uint64_t alignment) {
    static std::uint64_t next = 0x6a0000000000u - (random_number() % 0x40000u) * granularity;
    for (int attempt = 0; attempt < 64; ++attempt) {
        std::uint64_t address = (next - size - (random_number() % 64) * granularity) / alignment * alignment;
        if (address < (1ull << 32) || address > next) break;
        next = address;
        if (reserve_at(address, size)) return address;
    }
    void *got = hold_addresses(nullptr, size + alignment, 0);
    if (got == MAP_FAILED) return 0;
    std::uint64_t base = reinterpret_cast<std::uint64_t>(got);
    std::uint64_t address = (base + alignment - 1) / alignment * alignment;
    if (address > base) munmap(got, address - base);
    munmap(reinterpret_cast<void *>(address + size), base + alignment - address);
    return address;
}

} // namespace

} // namespace sim

using sim::Physical;
using sim::Region;
using sim::RegionKind;

CUresult sim::cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                  unsigned long long flags) {
    if (!ptr || size == 0 || !aligned(size) || flags != 0 || (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    alignment = std::max<std::size_t>(alignment, granularity);
    std::uint64_t got = 0;
    if (addr != 0 && addr % alignment == 0)
        got = reserve_at(addr, size); // a wish: where it is taken, the driver picks another
    if (!got) got = reserve_anywhere(size, alignment);
    if (!got) return CUDA_ERROR_OUT_OF_MEMORY;
    reservations()[got] = size;
    *ptr = got;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    auto found = reservations().find(ptr);
    if (found == reservations().end() || found->second != size || any_region(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    munmap(reinterpret_cast<void *>(ptr), size);
    reservations().erase(found);
    return CUDA_SUCCESS;
}

CUresult sim::cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags) {
    std::shared_ptr<Physical> memory = physicals().share(handle);
    if (!memory || flags != 0 || size == 0 || !aligned(ptr) || !aligned(size) || !aligned(offset) ||
        offset > memory->size || size > memory->size - offset || !reserved(ptr, size) || any_region(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    void *mapped = mmap(reinterpret_cast<void *>(ptr), size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file,
                        static_cast<off_t>(memory->offset + offset));
    if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    Region region;
    region.base = ptr;
    region.size = size;
    region.kind = RegionKind::mapped;
    region.device =
        memory->properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? memory->properties.location.id : 0;
    region.physical = memory;
    region.offset = offset;
    add_region(region);
    return CUDA_SUCCESS;
}

CUresult sim::cuMemUnmap(CUdeviceptr ptr, size_t size) {
    if (size == 0 || !aligned(ptr) || !aligned(size) || mappings_of(ptr, size).empty()) return CUDA_ERROR_INVALID_VALUE;
    for (Region *region : mappings_of(ptr, size)) remove_region(region->base);
    if (hold_addresses(reinterpret_cast<void *>(ptr), size, MAP_FIXED) == MAP_FAILED) return CUDA_ERROR_UNKNOWN;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
    if (!desc || count == 0 || size == 0 || !aligned(ptr) || !aligned(size) || mappings_of(ptr, size).empty())
        return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < count; ++index)
        if (!valid_location(desc[index].location)) return CUDA_ERROR_INVALID_VALUE;
    for (Region *region : mappings_of(ptr, size)) {
        for (std::size_t index = 0; index < count; ++index) {
            int location = desc[index].location.type == CU_MEM_LOCATION_TYPE_DEVICE ? desc[index].location.id : -1;
            if (desc[index].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
                region->access.erase(location);
            else
                region->access[location] = desc[index].flags;
        }
        int protection = PROT_NONE;
        for (auto [location, flags] : region->access)
            protection |= flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE : PROT_READ;
        if (mprotect(reinterpret_cast<void *>(region->base), region->size, protection) != 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult sim::cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr) {
    Region *region = region_at(ptr);
    if (!flags || !location || !region || region->kind != RegionKind::mapped) return CUDA_ERROR_INVALID_VALUE;
    auto found = region->access.find(location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : -1);
    *flags = found == region->access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
    Region *region = region_at(reinterpret_cast<std::uint64_t>(addr));
    if (!handle || !region || region->kind != RegionKind::mapped) return CUDA_ERROR_INVALID_VALUE;
    if (physicals().find(region->physical->handle) == region->physical.get())
        region->physical->references++;
    else {
        region->physical->references = 1;
        physicals().add(region->physical);
    }
    *handle = region->physical->handle;
    return CUDA_SUCCESS;
}
