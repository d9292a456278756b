#include "engine.h"

#include <algorithm>

#include "../hook/state.h"
#include "respool.h"
#include "session.h"

namespace foundry::restore {

CUdeviceptr arena_base(uint32_t device, size_t *arena_size) {
    Session *session = Session::get();
    const auto *entry = session ? session->image->device(device) : nullptr;
    *arena_size = entry && entry->base ? entry->arena_size : 0;
    return entry ? entry->base : 0;
}

bool may_move() {
    Session *session = Session::get();
    return session && session->may_move();
}

void moved(uint32_t device, CUdeviceptr base, size_t arena_size) {
    if (Session *session = Session::get()) session->move(device, base, arena_size);
}

void driver_ready() {
    Session *session = Session::get();
    if (session && !session->graph_order.empty()) session->start_workers();
}

namespace {

void add_context(CUcontext context, uint32_t ordinal, bool primary, bool of_program) {
    Session *session = Session::get();
    DeviceState *device = session ? session->device(ordinal) : nullptr;
    if (!device) return;
    if (!session->reserve(*device)) return;
    {
        std::lock_guard<std::mutex> lock(session->mutex);
        session->context_seen = true;
        if (of_program && !session->program_context_seen) {
            session->program_context_seen = true;
            session->times.early = session->background_so_far();
            session->times.ready = 0; // what was built before took nothing of the program's time
        }
        if (primary)
            device->primary = context;
        else
            device->created.push_back(context);
    }
    session->start_workers();
}

} // namespace

void context_ready(CUcontext context, uint32_t ordinal, bool primary) {
    add_context(context, ordinal, primary, true);
}

void context_before_program(CUcontext context, uint32_t ordinal) {
    add_context(context, ordinal, true, false);
}

void context_gone(CUcontext context) {
    if (Session *session = Session::any()) session->context_gone(context);
}

void allocated(const Block &block) {
    Session *session = Session::current();
    if (!session) return;
    session->compare_log(block, false);
    if (session->postponed) session->wake_workers();
}

void freed(const Block &block) {
    if (Session *session = Session::current()) session->compare_log(block, true);
}

bool library_handover(const uint8_t key[32], CUlibrary *library) {
    Session *session = Session::get();
    return session && session->handover(key, FOUNDRY_API_LIBRARY, nullptr, reinterpret_cast<void **>(library));
}

bool module_handover(const uint8_t key[32], CUcontext context, CUmodule *module) {
    Session *session = Session::get();
    return session && session->handover(key, FOUNDRY_API_MODULE, context, reinterpret_cast<void **>(module));
}

void library_loaded(const uint8_t key[32], CUlibrary library) {
    if (Session *session = Session::any()) session->loaded(key, FOUNDRY_API_LIBRARY, nullptr, library);
}

void module_loaded(const uint8_t key[32], CUcontext context, CUmodule module) {
    if (Session *session = Session::any()) session->loaded(key, FOUNDRY_API_MODULE, context, module);
}

void load_failed(const uint8_t key[32]) {
    if (Session *session = Session::any()) session->load_failed(key);
}

void image_given(uint64_t handle) {
    Session *session = Session::current();
    if (session && session->respool) session->respool->image_given(reinterpret_cast<void *>(handle));
}

// Also after a disarm: handles that were given away are shared for ever.
bool library_unload(CUlibrary library) {
    Session *session = Session::any();
    return session && session->unload(library);
}

bool module_unload(CUmodule module) {
    Session *session = Session::any();
    return session && session->unload(module);
}

void forked() {
    Session::forget();
}

void process_end() {
    Session *session = Session::any();
    if (!session) return;
    session->stop_workers();
    if (session->respool) session->respool->rest();
    session->spool_timings();
    const bool handed =
        std::any_of(session->graphs.begin(), session->graphs.end(), [](const auto &graph) { return graph.handed; });
    if (handed) session->summary();
}

} // namespace foundry::restore
