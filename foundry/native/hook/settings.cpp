#include "settings.h"

#include <stdlib.h>

#include "state.h"

namespace foundry {

const char *setting(const char *name) {
    return getenv(name);
}

std::string image_path() {
    const char *folder = getenv("FOUNDRY_IMAGE");
    return folder && *folder ? std::string(folder) + "/" + role() + ".image" : std::string();
}

bool spools() {
    return true;
}

} // namespace foundry
