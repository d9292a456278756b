// Which file a piece of memory was loaded from.
#ifndef FOUNDRY_HOOK_PROVENANCE_H
#define FOUNDRY_HOOK_PROVENANCE_H

#include <stdint.h>

namespace foundry {

struct Provenance {
    char path[1024] = "";    // "" = memory that belongs to no library
    char build_id[129] = ""; // hex
    uint64_t offset = 0;     // in the file
};

Provenance provenance_of(const void *address);

} // namespace foundry

#endif
