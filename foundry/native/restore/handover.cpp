// One copy of each image in the process: the engine's load is given to the program, or the program's load is used by
// the engine.
#include <cstring>

#include "../abi/spool_format.h"
#include "respool.h"
#include "session.h"

namespace foundry::restore {
namespace {

constexpr uint32_t nothing = FOUNDRY_NONE;

// The image that this thread was told to load for real, until it says how that went.
thread_local uint32_t pending = nothing;

std::string_view as_key(const uint8_t key[32]) {
    return {reinterpret_cast<const char *>(key), 32};
}

} // namespace

bool Session::handover(const uint8_t key[32], uint32_t api, CUcontext context, void **handle) {
    std::unique_lock<std::mutex> lock(mutex);
    if (pending != nothing) {
        images[pending].work = Work::idle;
        images[pending].program_loads = false;
        pending = nothing;
        changed.notify_all();
    }
    auto known = image_keys.find(as_key(key));
    if (known == image_keys.end()) return false;
    const uint32_t nth = loads[known->first]++;
    uint32_t index = nothing;
    for (uint32_t at : known->second)
        if (image->images()[at].instance == nth) index = at;
    if (index == nothing || image->images()[index].api != api) return false;
    ImageState &state = images[index];
    if (api == FOUNDRY_API_MODULE && context != context_of(image->images()[index].device, state.context_ordinal))
        return false;
    if (state.work == Work::busy) {
        Stopwatch watch(times.blocked);
        if (!wait_for(lock, [&] { return state.work != Work::busy; })) {
            lock.unlock();
            overdue();
            return false;
        }
    }
    if (state.work == Work::idle) {
        state.work = Work::busy;
        state.program_loads = true;
        state.until = state.never;
        state.context = context;
        pending = index;
        return false;
    }
    if (state.work != Work::ready) return false;
    state.references++;
    *handle = state.library ? static_cast<void *>(state.library) : static_cast<void *>(state.module);
    return true;
}

void Session::loaded(const uint8_t key[32], uint32_t api, CUcontext context, void *handle) {
    const uint32_t index = pending;
    pending = nothing;
    if (index == nothing) return;
    ImageState &state = images[index];
    const auto &entry = image->images()[index];
    // The state is this thread's until it is busy no more.
    const bool expected = !memcmp(entry.key, key, sizeof entry.key) && entry.api == api &&
                          (api != FOUNDRY_API_MODULE || context == state.context);
    if (respool && expected) respool->image_ready(index, handle, context);
    std::lock_guard<std::mutex> lock(mutex);
    state.program_loads = false;
    changed.notify_all();
    if (!expected) {
        state.work = Work::idle;
        return;
    }
    (api == FOUNDRY_API_MODULE ? reinterpret_cast<void *&>(state.module) : reinterpret_cast<void *&>(state.library)) =
        handle;
    state.references = 1;
    state.work = Work::ready;
    image_handles[handle] = index;
}

void Session::load_failed(const uint8_t[32]) {
    std::lock_guard<std::mutex> lock(mutex);
    if (pending == nothing) return;
    images[pending].work = Work::idle;
    images[pending].program_loads = false;
    pending = nothing;
    changed.notify_all();
}

// An image that graphs use stays loaded for as long as the process lives; so does one whose kernels are being looked
// up.
bool Session::unload(void *handle) {
    std::lock_guard<std::mutex> lock(mutex);
    auto known = image_handles.find(handle);
    if (known == image_handles.end()) return false;
    ImageState &state = images[known->second];
    if (state.references) state.references--;
    if (state.references || state.users || state.in_graphs) return true;
    state.work = Work::failed;
    state.reason = "the program has unloaded it";
    state.library = nullptr;
    state.module = nullptr;
    image_handles.erase(known);
    return false;
}

} // namespace foundry::restore
