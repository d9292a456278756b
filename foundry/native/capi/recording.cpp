// What a program says about itself while it captures: phases that a restore skips, and names for its graphs.
#include <string.h>

#include "../hook/spool.h"
#include "../hook/state.h"
#include "foundry_capi.h"
#include "reason.h"

using namespace foundry;

namespace {

constexpr size_t longest_name = 4096;

void phase(bool begin, const char *name) {
    if (armed()) Frame(FOUNDRY_EVENT_PHASE).u8(begin).u8(FOUNDRY_PHASE_SCRATCH).str(name).write();
}

} // namespace

FOUNDRY_EXPORT int foundry_scratch_begin(const char *name) {
    scratch_begin();
    phase(true, name ? name : "");
    return capi::answer_ok();
}

FOUNDRY_EXPORT int foundry_scratch_end(void) {
    if (!scratch_end()) return capi::answer_misuse("no scratch phase is open");
    phase(false, "");
    return capi::answer_ok();
}

FOUNDRY_EXPORT int foundry_graph_begin(const char *set, const char *key) {
    if (!set || !key || !*set || !*key) return capi::answer_misuse("a graph needs a set and a key");
    if (strlen(set) >= longest_name || strlen(key) >= longest_name)
        return capi::answer_misuse("a set or key is longer than 4,095 bytes");
    if (!graph_label_begin(set, key)) return capi::answer_misuse("this thread has begun a graph already");
    return capi::answer_ok();
}

FOUNDRY_EXPORT int foundry_graph_end(const char *metadata) {
    bool used = false;
    char set[longest_name], key[longest_name];
    if (!graph_label_end(&used, set, sizeof set, key, sizeof key))
        return capi::answer_misuse("this thread has not begun a graph");
    if (!armed()) return capi::answer_ok();
    if (!used)
        return capi::answer_unavailable(std::string("no graph was instantiated for `") + set + "` `" + key + "`");
    if (metadata && !Frame(FOUNDRY_EVENT_GRAPH_METADATA).str(set).str(key).str(metadata).write())
        return capi::answer_unavailable("the spool could not be written");
    return capi::answer_ok();
}
