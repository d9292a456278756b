// A fatbin container that holds the entries for one device alone.
#ifndef FOUNDRY_HOOK_FATBIN_THIN_H
#define FOUNDRY_HOOK_FATBIN_THIN_H

#include <stddef.h>
#include <stdint.h>

namespace foundry {

// Writes it as a blob. False: the container has no machine code for this very device, so that the driver chooses among
// the others, or the spool takes no more.
bool fatbin_thin_blob(const uint8_t *data, size_t size, uint32_t compute_capability, uint32_t *blob);

} // namespace foundry

#endif
