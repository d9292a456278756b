// CRC-32C (Castagnoli, reflected, initial and final inversion).
#ifndef FOUNDRY_HOOK_CRC32C_H
#define FOUNDRY_HOOK_CRC32C_H

#include <stddef.h>
#include <stdint.h>

namespace foundry {

// crc = 0 to begin; the result of one piece begins the next.
uint32_t crc32c(uint32_t crc, const void *data, size_t size);
// The table version alone, for comparison in tests.
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t size);

} // namespace foundry

#endif
