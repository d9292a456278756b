// Images that the driver compiles when it loads them: the cubin they become is stored, so that a restore never
// compiles.
#ifndef FOUNDRY_HOOK_IMAGE_LINKS_H
#define FOUNDRY_HOOK_IMAGE_LINKS_H

#include <stdint.h>

namespace foundry {

struct ImageLoad;

// Links at once, or keeps a copy for images_link_pending() while a capture is in progress.
void link_later(uint64_t handle, const ImageLoad &load);
void link_forget(uint64_t handle);
void links_forget();

} // namespace foundry

#endif
