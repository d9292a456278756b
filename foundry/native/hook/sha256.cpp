#include "sha256.h"

#include <string.h>

#include <algorithm>

#include "processor.h"
#include "sha256_blocks.h"

namespace foundry {
namespace {

uint32_t rotate(uint32_t value, int bits) {
    return value >> bits | value << (32 - bits);
}

} // namespace

void sha256_blocks_portable(uint32_t state[8], const uint8_t *data, size_t count) {
    for (; count; --count, data += 64) {
        uint32_t words[64];
        for (int index = 0; index < 16; ++index) {
            uint32_t word;
            memcpy(&word, data + 4 * index, 4);
            words[index] = __builtin_bswap32(word);
        }
        for (int index = 16; index < 64; ++index) {
            uint32_t early = words[index - 15], late = words[index - 2];
            words[index] = words[index - 16] + words[index - 7] + (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) +
                           (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
        }
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
                 h = state[7];
        for (int index = 0; index < 64; ++index) {
            uint32_t first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +
                             sha256_constants[index] + words[index];
            uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
        }
        state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g,
            state[7] += h;
    }
}

Sha256::Sha256(bool portable)
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      blocks_(sha256_blocks_portable) {
#if defined(__x86_64__)
    if (!portable && processor_has_sha()) blocks_ = sha256_blocks_x86;
#else
    (void)portable;
#endif
}

void Sha256::add(const void *data, size_t size) {
    auto *bytes = static_cast<const uint8_t *>(data);
    if (!size) return;
    total_ += size;
    if (held_) {
        size_t take = std::min(size, sizeof block_ - held_);
        memcpy(block_ + held_, bytes, take);
        held_ += take, bytes += take, size -= take;
        if (held_ < sizeof block_) return;
        blocks_(state_, block_, 1);
        held_ = 0;
    }
    blocks_(state_, bytes, size / 64);
    bytes += size / 64 * 64;
    held_ = size % 64;
    memcpy(block_, bytes, held_);
}

void Sha256::finish(uint8_t digest[32]) {
    uint64_t bits = total_ * 8;
    block_[held_++] = 0x80;
    if (held_ > 56) {
        memset(block_ + held_, 0, sizeof block_ - held_);
        blocks_(state_, block_, 1);
        held_ = 0;
    }
    memset(block_ + held_, 0, 56 - held_);
    bits = __builtin_bswap64(bits);
    memcpy(block_ + 56, &bits, 8);
    blocks_(state_, block_, 1);
    for (int index = 0; index < 8; ++index) {
        uint32_t word = __builtin_bswap32(state_[index]);
        memcpy(digest + 4 * index, &word, 4);
    }
}

void sha256(const void *data, size_t size, uint8_t digest[32]) {
    Sha256 hash;
    hash.add(data, size);
    hash.finish(digest);
}

} // namespace foundry
