// What this processor can do, asked directly: the compiler's own helper would need a constructor.
#ifndef FOUNDRY_HOOK_PROCESSOR_H
#define FOUNDRY_HOOK_PROCESSOR_H

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace foundry {

inline bool processor_has_crc32() {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
#else
    return false;
#endif
}

inline bool processor_has_sha() {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
#else
    return false;
#endif
}

} // namespace foundry

#endif
