// Memory that the hook did not place, as the spool tells it: RANGE and RANGE_GONE.
#ifndef FOUNDRY_HOOK_RANGES_H
#define FOUNDRY_HOOK_RANGES_H

#include <stddef.h>
#include <stdint.h>

namespace foundry {

// A range that is known already with the same bounds, owner and name is not written again.
void range_add(int kind, uint64_t address, size_t size, uint64_t owner = 0, const char *name = "");
// False: no range of that kind begins there.
bool range_remove(int kind, uint64_t address);
// All ranges of a kind that begin within the bounds.
void range_remove_within(int kind, uint64_t address, size_t size);
// All globals of an image.
void range_remove_owner(uint64_t owner);
// Tells whether a range of the kind begins there.
bool range_known(int kind, uint64_t address);

} // namespace foundry

#endif
