// Which file a piece of memory was loaded from.
#ifndef FOUNDRY_HOOK_PROVENANCE_H
#define FOUNDRY_HOOK_PROVENANCE_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

namespace foundry {

struct Provenance {
    char path[1024] = "";    // "" = memory that belongs to no library
    char build_id[129] = ""; // hex
    uint64_t offset = 0;     // in the file
};

// The build id of a library that the loader lists, in hex; "" if it has none. Does not call into the loader.
void read_build_id(const dl_phdr_info *info, char *text, size_t size);

Provenance provenance_of(const void *address);

} // namespace foundry

#endif
