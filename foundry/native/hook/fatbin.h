// The fatbin container as nvcc lays it out.
#ifndef FOUNDRY_HOOK_FATBIN_H
#define FOUNDRY_HOOK_FATBIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace foundry {

constexpr uint32_t fatbin_magic = 0xba55ed50;

struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_size;
    uint64_t body_size;
};
static_assert(sizeof(FatbinHeader) == 16);

enum FatbinKind : uint16_t { fatbin_ptx = 1, fatbin_elf = 2 };

// The head of an entry, as far as it is needed.
struct FatbinEntry {
    uint16_t kind;
    uint16_t version;
    uint32_t header_size;
    uint64_t payload_size; // padded
    uint32_t compressed_size;
    uint32_t options_offset;
    uint16_t minor, major;
    uint32_t architecture;
};
static_assert(sizeof(FatbinEntry) == 32 && offsetof(FatbinEntry, architecture) == 28);

// Calls visit(entry, header bytes, payload bytes) for each whole entry. False: the container's lengths contradict each
// other.
template <typename Visit> bool fatbin_each(const uint8_t *data, size_t size, Visit visit) {
    FatbinHeader header;
    if (size < sizeof header) return false;
    memcpy(&header, data, sizeof header);
    if (header.magic != fatbin_magic || header.header_size < sizeof header || header.header_size > size) return false;
    size_t end = header.body_size < size - header.header_size ? header.header_size + header.body_size : size;
    for (size_t at = header.header_size; at < end;) {
        FatbinEntry entry;
        if (end - at < sizeof entry) return false;
        memcpy(&entry, data + at, sizeof entry);
        if (entry.header_size < sizeof entry || entry.header_size > end - at) return false;
        if (entry.payload_size > end - at - entry.header_size) return false;
        visit(entry, data + at, data + at + entry.header_size);
        at += entry.header_size + entry.payload_size;
    }
    return true;
}

} // namespace foundry

#endif
