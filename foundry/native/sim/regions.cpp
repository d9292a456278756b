#include "regions.h"

namespace sim {

std::map<std::uint64_t, Region> &regions() {
    static auto *all = new std::map<std::uint64_t, Region>;
    return *all;
}

Region &add_region(Region region) {
    static unsigned long long next_buffer = 1;
    region.buffer_id = next_buffer++;
    std::uint64_t base = region.base;
    return regions().insert_or_assign(base, std::move(region)).first->second;
}

void remove_region(std::uint64_t base) {
    regions().erase(base);
}

Region *region_at(std::uint64_t address) {
    auto next = regions().upper_bound(address);
    if (next == regions().begin()) return nullptr;
    Region &region = std::prev(next)->second;
    return address - region.base < region.size ? &region : nullptr;
}

bool device_accessible(std::uint64_t address, std::uint64_t size) {
    do {
        Region *region = region_at(address);
        if (!region || (region->kind == RegionKind::mapped && region->access.empty())) return false;
        std::uint64_t here = region->base + region->size - address;
        if (here >= size) return true;
        if (region->kind != RegionKind::mapped) return false; // only mappings that touch can be used as one
        address += here;
        size -= here;
    } while (size != 0);
    return true;
}

bool on_device(std::uint64_t address) {
    Region *region = region_at(address);
    return region && region->kind != RegionKind::pinned && region->kind != RegionKind::registered;
}

} // namespace sim
