// Files that stand for device memory which other processes may map. Their names tell whose memory it is.
#pragma once

#include "devices.h"

namespace sim {

// A file of that size, of memory of the device; -1 if there is none to be had.
int make_shared_file(int device, std::uint64_t size);
// The device, as this process numbers it; 0 for one that it does not see.
int device_of_shared_file(int file);
// Copies what was written to the range, and leaves holes where nothing was, to the begin of another file.
bool copy_file_range_sparse(int from, std::uint64_t offset, int to, std::uint64_t size);

} // namespace sim
