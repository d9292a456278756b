#include "image_key.h"

#include <string.h>

#include "../abi/spool_format.h"
#include "fatbin.h"
#include "sha256.h"

namespace foundry {
namespace {

bool is_fatbin(const uint8_t *data, size_t size) {
    uint32_t magic;
    if (size < sizeof magic) return false;
    memcpy(&magic, data, sizeof magic);
    return magic == fatbin_magic;
}

// The container header, every entry's header, and the payloads for this device.
bool fatbin_key(const uint8_t *data, size_t size, uint32_t compute_capability, uint8_t key[32]) {
    bool has_code = false;
    Sha256 hash;
    FatbinHeader header;
    memcpy(&header, data, sizeof header);
    if (size < header.header_size) return false;
    hash.add(data, header.header_size);
    bool whole = fatbin_each(data, size, [&](const FatbinEntry &entry, const uint8_t *head, const uint8_t *payload) {
        hash.add(head, entry.header_size);
        if (entry.architecture != compute_capability) return;
        has_code = has_code || entry.kind == fatbin_elf;
        hash.add(payload, entry.payload_size);
    });
    if (!whole || !has_code) return false;
    hash.finish(key);
    return true;
}

bool option_changes_code(CUjit_option option) {
    switch (option) {
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
        return false;
    default:
        return jit_option_plain(option);
    }
}

} // namespace

void image_key(const void *image, size_t size, uint32_t compute_capability, uint8_t key[32]) {
    ImageBytes bytes = image_bytes(image);
    auto *data = bytes.data && bytes.size ? bytes.data : static_cast<const uint8_t *>(image);
    if (size >= sizeof(FatbinHeader) && is_fatbin(data, size) && fatbin_key(data, size, compute_capability, key))
        return;
    sha256(data, size, key);
}

bool jit_option_plain(CUjit_option option) {
    constexpr int split_compile = 34; // CU_JIT_SPLIT_COMPILE, which not every cuda.h has
    if (static_cast<int>(option) == split_compile) return true;
    switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_TARGET:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_FAST_COMPILE:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
        return true;
    default:
        return false;
    }
}

void image_key_options(uint8_t key[32], std::span<const JitOption> options) {
    Sha256 hash;
    bool any = false;
    for (const JitOption &each : options) {
        if (!option_changes_code(each.option)) continue;
        if (!any) hash.add(key, 32);
        any = true;
        auto option = static_cast<uint32_t>(each.option);
        hash.add(&option, sizeof option);
        hash.add(&each.value, sizeof each.value);
    }
    if (any) hash.finish(key);
}

} // namespace foundry
