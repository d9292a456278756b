#include "handles.h"

namespace sim {

std::uint64_t fresh_handle() {
    static std::uint64_t next = 0x550000000000u + (random_number() % 0x1000000u) * 0x1000u + 0x10u;
    std::uint64_t value = next;
    next += 0x10u * (1 + random_number() % 64);
    return value;
}

} // namespace sim
