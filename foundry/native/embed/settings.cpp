// What the program that embeds the engine has asked for. The environment turns nothing on or off here: it may be meant
// for a hook that is preloaded.
#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include "../hook/settings.h"

namespace foundry {
namespace embed {

Asked asked;

} // namespace embed

namespace {

constexpr const char *of_the_environment[] = {"FOUNDRY_QUIET", "FOUNDRY_RESPOOL"};

} // namespace

const char *setting(const char *name) {
    if (!strcmp(name, "FOUNDRY_MODE")) return *embed::asked.image ? "restore" : nullptr;
    if (!strcmp(name, "FOUNDRY_SPOOL")) return *embed::asked.report ? embed::asked.report : nullptr;
    for (const char *one : of_the_environment)
        if (!strcmp(name, one)) return getenv(name);
    return nullptr;
}

std::string image_path() {
    return embed::asked.image;
}

bool spools() {
    return *embed::asked.report;
}

} // namespace foundry
