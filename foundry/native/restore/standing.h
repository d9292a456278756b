// Who stands in the way of a range of addresses.
#ifndef FOUNDRY_RESTORE_STANDING_H
#define FOUNDRY_RESTORE_STANDING_H

#include <stdint.h>

#include <string>

namespace foundry::restore {

// The first mapping of this process in [begin, end), by the base name of its file or by its kind, never by a path;
// empty if there is none to be seen.
std::string who_stands_in(uint64_t begin, uint64_t end);

} // namespace foundry::restore

#endif
