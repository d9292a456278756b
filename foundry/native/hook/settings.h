// What the hook is asked to do. In the preloaded library the environment says it, in the embedded one the program:
// each links a file of its own, settings.cpp or ../embed/settings.cpp.
#ifndef FOUNDRY_HOOK_SETTINGS_H
#define FOUNDRY_HOOK_SETTINGS_H

#include <string>

namespace foundry {

// The value of a FOUNDRY_ variable, or null.
const char *setting(const char *name);

// The file of this process's restore image; "" if nothing says where it is. After arm().
std::string image_path();

// Whether events go to a spool. Without one the hook works all the same, and no report can be made.
bool spools();

} // namespace foundry

#endif
