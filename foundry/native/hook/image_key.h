// Size and identity of a kernel image as a program passes it to the driver.
#ifndef FOUNDRY_HOOK_IMAGE_KEY_H
#define FOUNDRY_HOOK_IMAGE_KEY_H

#include <stddef.h>
#include <stdint.h>

#include <span>

#include "../table/real.h"

namespace foundry {

// The bytes that an image pointer stands for: a fatbin wrapper is followed to its container.
struct ImageBytes {
    const uint8_t *data = nullptr;
    size_t size = 0; // 0 = not understood, or it would reach into memory that is not mapped
    int format = 0;  // FOUNDRY_FORMAT_*
};

// Reads lengths only from the image's own headers and only where memory is mapped; never faults on a bad pointer.
ImageBytes image_bytes(const void *image);

// Size alone. 0 = unknown. format may be null.
size_t image_size(const void *image, int *format);

// SHA-256. Fatbin container: the container header, each entry's header, and the payloads of the entries for this
// compute capability (10 * major + minor) if there is machine code among them; else, as the driver chooses among the
// others, and for every other format, all bytes. `image` is where the bytes begin (ImageBytes::data; a wrapper is
// followed), `size` their number.
void image_key(const void *image, size_t size, uint32_t compute_capability, uint8_t key[32]);

// A JIT option whose value is a plain number.
struct JitOption {
    CUjit_option option;
    uint64_t value;
};

// JIT options that change the code are part of the identity: key = SHA-256(key, then u32 option, u64 value each).
// Unchanged where there are none of that kind.
void image_key_options(uint8_t key[32], std::span<const JitOption> options);
// True for options whose value is a plain number that the program gives.
bool jit_option_plain(CUjit_option option);
// That number; the upper half of the pointer it travels in is whatever was there.
inline uint64_t jit_option_value(const void *value) {
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(value));
}

} // namespace foundry

#endif
