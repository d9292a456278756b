// Physical memory as the program handles it: made, exported, mapped by virtual_memory.cpp.
#pragma once

#include "devices.h"

namespace sim {

constexpr std::uint64_t granularity = 2u << 20;
inline bool aligned(std::uint64_t value) {
    return value % granularity == 0;
}

// Physical memory: a range of the device's one file, or a file of its own once it was exported.
struct Physical {
    CUmemGenericAllocationHandle handle = 0;
    unsigned references = 1; // of the handle; mappings hold the object itself
    std::uint64_t size = 0;
    CUmemAllocationProp properties = {};
    int device = -1; // whose memory is counted; -1 for host memory and for that of another process
    int file = -1;
    bool own_file = false;
    std::uint64_t offset = 0;
    Physical() = default;
    Physical(const Physical &) = delete;
    Physical &operator=(const Physical &) = delete;
    ~Physical();
};

Table<CUmemGenericAllocationHandle, Physical> &physicals();
std::map<std::uint64_t, std::uint64_t> &reservations(); // base to size
bool valid_location(const CUmemLocation &location);

} // namespace sim
