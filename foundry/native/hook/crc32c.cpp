#include "crc32c.h"

#include <string.h>

#include <array>
#include <atomic>

#include "processor.h"

namespace foundry {
namespace {

constexpr uint32_t polynomial = 0x82f63b78;

constexpr auto table = [] {
    std::array<std::array<uint32_t, 256>, 8> all{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = value & 1 ? (value >> 1) ^ polynomial : value >> 1;
        all[0][byte] = value;
    }
    for (size_t slice = 1; slice < 8; ++slice)
        for (size_t byte = 0; byte < 256; ++byte)
            all[slice][byte] = (all[slice - 1][byte] >> 8) ^ all[0][all[slice - 1][byte] & 255];
    return all;
}();

#if defined(__x86_64__)
std::atomic<int> hardware{-1};

__attribute__((target("sse4.2"))) uint32_t crc32c_hardware(uint32_t crc, const void *data, size_t size) {
    auto *bytes = static_cast<const uint8_t *>(data);
    uint64_t value = ~crc;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        value = __builtin_ia32_crc32di(value, word);
    }
    auto narrow = static_cast<uint32_t>(value);
    for (; size; --size, ++bytes) narrow = __builtin_ia32_crc32qi(narrow, *bytes);
    return ~narrow;
}
#endif

} // namespace

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t size) {
    auto *bytes = static_cast<const uint8_t *>(data);
    uint32_t value = ~crc;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint32_t low, high;
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + 4, 4);
        low ^= value;
        value = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
                table[3][high & 255] ^ table[2][high >> 8 & 255] ^ table[1][high >> 16 & 255] ^ table[0][high >> 24];
    }
    for (; size; --size, ++bytes) value = (value >> 8) ^ table[0][(value ^ *bytes) & 255];
    return ~value;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size) {
#if defined(__x86_64__)
    int known = hardware.load(std::memory_order_relaxed);
    if (known < 0) {
        known = processor_has_crc32();
        hardware.store(known, std::memory_order_relaxed);
    }
    if (known) return crc32c_hardware(crc, data, size);
#endif
    return crc32c_portable(crc, data, size);
}

} // namespace foundry
