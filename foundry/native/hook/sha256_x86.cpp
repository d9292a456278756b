#include "sha256_blocks.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace foundry {

// The processor keeps the state as (A, B, E, F) and (C, D, G, H), high lane first.
__attribute__((target("sha,sse4.1,ssse3"))) void sha256_blocks_x86(uint32_t state[8], const uint8_t *data,
                                                                   size_t count) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i *>(state));      // D C B A
    __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i *>(state + 4)); // H G F E
    low = _mm_shuffle_epi32(low, 0xb1);                                           // C D A B
    high = _mm_shuffle_epi32(high, 0x1b);                                         // E F G H
    __m128i abef = _mm_alignr_epi8(low, high, 8);
    __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);

    for (; count; --count, data += 64) {
        __m128i saved_abef = abef, saved_cdgh = cdgh;
        __m128i words[4];
        for (int index = 0; index < 4; ++index)
            words[index] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(data) + index), swap);
        for (int round = 0; round < 16; ++round) {
            __m128i now = words[round & 3];
            __m128i sum =
                _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i *>(sha256_constants) + round));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
            // words[round & 3] becomes the four words sixteen further on.
            __m128i next = words[(round + 1) & 3], third = words[(round + 2) & 3], last = words[(round + 3) & 3];
            now = _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8(last, third, 4));
            words[round & 3] = _mm_sha256msg2_epu32(now, last);
        }
        abef = _mm_add_epi32(abef, saved_abef);
        cdgh = _mm_add_epi32(cdgh, saved_cdgh);
    }

    low = _mm_shuffle_epi32(abef, 0x1b);  // A B E F, low lane first
    high = _mm_shuffle_epi32(cdgh, 0xb1); // G H C D
    _mm_storeu_si128(reinterpret_cast<__m128i *>(state), _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(state + 4), _mm_alignr_epi8(high, low, 8));
}

} // namespace foundry

#endif
