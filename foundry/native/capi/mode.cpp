#include "../hook/arena.h"
#include "../hook/counters.h"
#include "../hook/library_files.h"
#include "../hook/moments.h"
#include "../hook/settings.h"
#include "../hook/spool.h"
#include "../hook/state.h"
#include "../restore/image.h"
#include "../restore/respool.h"
#include "../restore/session.h"
#include "foundry_capi.h"
#include "reason.h"

using namespace foundry;

FOUNDRY_EXPORT int foundry_capi_version(void) {
    return FOUNDRY_CAPI_VERSION;
}

FOUNDRY_EXPORT int foundry_mode(void) {
    capi::answer_ok(); // foundry_reason then tells why the hook gave up, and of no earlier call
    if (!armed()) return FOUNDRY_OFF;
    if (mode() == FOUNDRY_MODE_CAPTURE) return FOUNDRY_CAPTURE;
    return restore::Session::get() ? FOUNDRY_RESTORE : FOUNDRY_OFF;
}

FOUNDRY_EXPORT void foundry_count(const char *name, uint64_t add) {
    if (name && *name) count_named(name, add);
}

FOUNDRY_EXPORT uint64_t foundry_counter(const char *name) {
    return name ? counter_value(name) : 0;
}

FOUNDRY_EXPORT uint64_t foundry_range_base(int device) {
    return device < 0 ? 0 : arena_base(static_cast<uint32_t>(device), nullptr);
}

FOUNDRY_EXPORT int foundry_commit(void) {
    static std::atomic<uint32_t> ordinal{0};
    if (!armed()) return capi::answer_unavailable(*disarm_reason() ? disarm_reason() : "the hook is not armed");
    restore::Session *session = restore::Session::current();
    if (session && session->respool) session->respool->rest();
    if (session) session->spool_timings();
    library_files_tell();
    moments_commit();
    spool_counters();
    const bool written = Frame(FOUNDRY_EVENT_COMMIT).u32(ordinal.fetch_add(1)).write();
    status_line("committed", "");
    if (session) session->summary();
    return written || !spools() ? capi::answer_ok() : capi::answer_unavailable("the spool could not be written");
}

FOUNDRY_EXPORT int foundry_image_check(const char *path) {
    if (!path) return capi::answer_misuse("path is NULL");
    std::string reason;
    auto image = restore::open_image(path, reason);
    for (uint32_t blob = 0; image && blob < image->blobs().size(); blob++) {
        if (restore::check_blob(*image, blob)) continue;
        reason = std::string("`") + path + "`: blob " + std::to_string(blob) + ": checksum differs";
        image.reset();
    }
    return image ? capi::answer_ok() : capi::answer_unavailable(reason);
}
