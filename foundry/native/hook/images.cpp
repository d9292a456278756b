#include "images.h"

#include <string.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "../restore/engine.h"
#include "fatbin_thin.h"
#include "moments.h"
#include "process.h"
#include "ranges.h"
#include "spool.h"

namespace foundry {
namespace {

using Key = std::array<uint8_t, 32>;

struct Image {
    unsigned references;
    CUcontext context; // modules
};
struct Kernel {
    uint64_t image;
    std::string name;
};
struct Stored {
    uint32_t blob;
    int format;
    uint64_t size; // of the image; the blob may be thinner
};
struct State {
    std::map<Key, Stored> blobs;
    std::unordered_map<uint64_t, Image> images;
    std::unordered_map<uint64_t, Kernel> kernels;
    std::unordered_map<uint64_t, uint64_t> aliases;
};

std::mutex mutex;
State *state; // made on first use
std::atomic<uint64_t> generation{0};

State &all() {
    if (!state) state = new State;
    return *state;
}

uint64_t number(const void *handle) {
    return reinterpret_cast<uint64_t>(handle);
}

// With the lock held.
uint64_t resolve(uint64_t handle) {
    auto alias = all().aliases.find(handle);
    return alias == all().aliases.end() ? handle : alias->second;
}

// The bytes that came first with a key stand for all loads of it.
bool stored_for(const ImageLoad &load, bool handed_over, Stored *stored) {
    Key key;
    memcpy(key.data(), load.key, key.size());
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto found = all().blobs.find(key);
        if (found != all().blobs.end()) {
            *stored = found->second;
            return true;
        }
    }
    *stored = {0, load.bytes.format, load.bytes.size};
    // Of an image whose bytes the archive has, only what this device runs is kept.
    bool thin = handed_over && load.bytes.format == FOUNDRY_FORMAT_FATBIN &&
                fatbin_thin_blob(load.bytes.data, load.bytes.size, compute_capability(), &stored->blob);
    if (!thin && !spool_blob(load.bytes.data, load.bytes.size, &stored->blob)) return false;
    std::lock_guard<std::mutex> lock(mutex);
    // Two threads may have written the same image at once; the first one's stays.
    *stored = all().blobs.try_emplace(key, *stored).first->second;
    return true;
}

void write_image(uint64_t handle, int api, const ImageLoad &load, CUcontext context, const Stored &stored) {
    Frame frame(FOUNDRY_EVENT_IMAGE);
    frame.u64(handle)
        .u8(static_cast<uint8_t>(api))
        .u8(static_cast<uint8_t>(stored.format))
        .u32(stored.blob)
        .u64(stored.size)
        .raw(load.key, sizeof load.key)
        .handle(context);
    frame.u32(static_cast<uint32_t>(load.options.size()));
    for (const JitOption &each : load.options) frame.u32(static_cast<uint32_t>(each.option)).u64(each.value);
    frame.str(load.provenance.path).str(load.provenance.build_id).u64(load.provenance.offset).write();
}

void forget_kernels(uint64_t image) {
    std::erase_if(all().kernels, [image](const auto &entry) { return entry.second.image == image; });
    std::erase_if(all().aliases, [image](const auto &entry) { return entry.second == image; });
    // A function that stood for a kernel of this image stands for nothing now.
    std::erase_if(all().aliases, [](const auto &entry) {
        return !all().kernels.count(entry.second) && !all().images.count(entry.second);
    });
}

} // namespace

void image_loaded(uint64_t handle, int api, const ImageLoad &load, CUcontext context, bool handed_over) {
    moment_first(Moment::first_image);
    image_held(handle, context);
    if (!load.known()) {
        finding_once("image-unknown",
                     "an image was loaded whose size could not be told; graphs that use it cannot be restored");
        return;
    }
    if (handed_over) restore::image_given(handle);
    Stored stored;
    if (!stored_for(load, handed_over, &stored)) return;
    write_image(handle, api, load, context, stored);
}

void image_held(uint64_t handle, CUcontext context) {
    std::lock_guard<std::mutex> lock(mutex);
    Image &image = all().images[handle];
    ++image.references;
    image.context = context;
}

void image_restored(uint64_t handle, int api, const ImageLoad &load, CUcontext context, uint32_t instance) {
    Stored stored;
    if (!stored_for(load, false, &stored)) return;
    Frame(FOUNDRY_EVENT_IMAGE_RESTORED).u64(handle).u32(instance).write();
    write_image(handle, api, load, context, stored);
}

void image_unloaded(uint64_t handle) {
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto image = all().images.find(handle);
        if (image == all().images.end() || --image->second.references) return;
        all().images.erase(image);
        forget_kernels(handle);
    }
    generation.fetch_add(1, std::memory_order_acq_rel);
    range_remove_owner(handle);
    Frame(FOUNDRY_EVENT_IMAGE_GONE).u64(handle).write();
}

void images_context_gone(CUcontext context) {
    std::vector<uint64_t> gone;
    {
        std::lock_guard<std::mutex> lock(mutex);
        for (auto &[handle, image] : all().images)
            if (context && image.context == context) {
                image.references = 1;
                gone.push_back(handle);
            }
    }
    for (uint64_t handle : gone) image_unloaded(handle);
}

void kernel_seen(const void *handle, uint64_t image, const char *name) {
    std::lock_guard<std::mutex> lock(mutex);
    Kernel &kernel = all().kernels[number(handle)];
    kernel.image = resolve(image);
    if (name) kernel.name = name;
}

void alias_seen(const void *alias, const void *of) {
    if (alias == of) return;
    std::lock_guard<std::mutex> lock(mutex);
    all().aliases[number(alias)] = number(of);
}

bool kernel_find(const void *handle, uint64_t *image, std::string *name) {
    std::lock_guard<std::mutex> lock(mutex);
    auto kernel = all().kernels.find(number(handle));
    if (kernel == all().kernels.end()) kernel = all().kernels.find(resolve(number(handle)));
    if (kernel == all().kernels.end()) return false;
    *image = kernel->second.image;
    *name = kernel->second.name;
    return true;
}

uint64_t image_resolve(const void *handle) {
    std::lock_guard<std::mutex> lock(mutex);
    return resolve(number(handle));
}

bool image_known(uint64_t handle) {
    std::lock_guard<std::mutex> lock(mutex);
    return all().images.count(handle) != 0;
}

uint64_t images_generation() {
    return generation.load(std::memory_order_acquire);
}

void images_forget() {
    new (&mutex) std::mutex;
    state = nullptr;
}

} // namespace foundry
