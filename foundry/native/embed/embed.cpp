#include "embed.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "../capi/foundry_capi.h"
#include "../capi/foundry_embed.h"
#include "../capi/reason.h"
#include "../hook/doors.h"
#include "../hook/state.h"
#include "../table/real_dlsym.h"
#include "../table/row.h"
#include "settings.h"

namespace foundry::embed {
namespace {

struct Function {
    const char *name;
    void *address;
};

#define FOUNDRY_FUNCTION(name) {#name, reinterpret_cast<void *>(&::name)}
const Function functions[] = {
    FOUNDRY_FUNCTION(foundry_capi_version), FOUNDRY_FUNCTION(foundry_mode),
    FOUNDRY_FUNCTION(foundry_reason),       FOUNDRY_FUNCTION(foundry_scratch_begin),
    FOUNDRY_FUNCTION(foundry_scratch_end),  FOUNDRY_FUNCTION(foundry_commit),
    FOUNDRY_FUNCTION(foundry_graph_begin),  FOUNDRY_FUNCTION(foundry_graph_end),
    FOUNDRY_FUNCTION(foundry_graph_find),   FOUNDRY_FUNCTION(foundry_graph_next),
    FOUNDRY_FUNCTION(foundry_graph_key),    FOUNDRY_FUNCTION(foundry_graph_metadata),
    FOUNDRY_FUNCTION(foundry_graph_wait),   FOUNDRY_FUNCTION(foundry_graph_launch),
    FOUNDRY_FUNCTION(foundry_graph_exec),   FOUNDRY_FUNCTION(foundry_graph_give_up),
    FOUNDRY_FUNCTION(foundry_range_base),   FOUNDRY_FUNCTION(foundry_count),
    FOUNDRY_FUNCTION(foundry_counter),      FOUNDRY_FUNCTION(foundry_image_check),
    FOUNDRY_FUNCTION(foundry_table_row),
};
#undef FOUNDRY_FUNCTION

std::atomic<bool> entered{false};

void *opened_driver() {
    for (const char *name : {"libcuda.so.1", "libcuda.so"})
        if (void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
    return nullptr;
}

bool copy(char (&to)[4096], const char *path) {
    return snprintf(to, sizeof to, "%s", path ? path : "") < static_cast<int>(sizeof to);
}

} // namespace

// The engine's own functions have no dynamic symbols, so what is found is another's.
bool serves() {
    static std::atomic<int> known{-1};
    int now = known.load(std::memory_order_relaxed);
    if (now < 0) {
        now = !real_dlsym()(RTLD_DEFAULT, "foundry_capi_version");
        known.store(now, std::memory_order_relaxed);
    }
    return now;
}

void *function_named(const char *name) {
    if (!serves()) return real_dlsym()(RTLD_DEFAULT, name);
    for (const Function &function : functions)
        if (!strcmp(function.name, name)) return function.address;
    return nullptr;
}

} // namespace foundry::embed

using namespace foundry;

FOUNDRY_EXPORT int foundry_embed_restore(const char *image, const char *report) {
    if (!image || !*image) return capi::answer_misuse("no image is named");
    if (!embed::serves()) return capi::answer_ok();
    if (*embed::asked.image) return capi::answer_misuse("an image was named before");
    if (embed::entered.load()) return capi::answer_misuse("driver functions were given out before");
    if (access(image, R_OK) != 0) return capi::answer_unavailable(std::string("cannot read `") + image + "`");
    if (!embed::copy(embed::asked.report, report) || !embed::copy(embed::asked.image, image)) {
        embed::asked.image[0] = 0;
        return capi::answer_misuse("a path is too long");
    }
    return capi::answer_ok();
}

FOUNDRY_EXPORT void *foundry_embed_entry(const char *name) {
    if (!name) return nullptr;
    if (!strncmp(name, "foundry_", 8)) return embed::function_named(name);
    void *library = embed::opened_driver();
    if (!library) return capi::answer_unavailable("the program has not opened libcuda.so.1"), nullptr;
    embed::entered.store(true);
    void *found = real_dlsym()(library, name);
    if (!found || !embed::serves()) return found;
    bind_driver(library);
    return route_address(found, name);
}
