// Every range of addresses that the driver knows, whoever made it.
#pragma once

#include "devices.h"

#include <cstdint>
#include <memory>

namespace sim {

enum class RegionKind { device, pool, graph, mapped, managed, pinned, registered, global, peer };

struct Physical;

struct Region {
    std::uint64_t base = 0, size = 0;
    RegionKind kind = RegionKind::device;
    int device = 0;
    CUcontext context = nullptr; // whose end frees it; null for memory of no context
    unsigned long long buffer_id = 0;
    unsigned flags = 0; // of the host call that made it
    bool sync_memops = false;
    CUmemoryPool pool = nullptr;
    std::shared_ptr<Physical> physical; // of a mapping
    std::uint64_t offset = 0;
    std::map<int, CUmemAccess_flags> access; // of a mapping, by device
};

Region &add_region(Region region);
void remove_region(std::uint64_t base);
Region *region_at(std::uint64_t address); // the one that holds the address, else null
std::map<std::uint64_t, Region> &regions();

// Whether a device may touch all of the range: known, and given access where that is asked for.
bool device_accessible(std::uint64_t address, std::uint64_t size);
// Whether the range lies in memory of a device (not merely known to it, as pinned host memory is).
bool on_device(std::uint64_t address);

} // namespace sim
