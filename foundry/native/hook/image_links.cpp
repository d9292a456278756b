#include "image_links.h"

#include <string.h>

#include <array>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "images.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

using Key = std::array<uint8_t, 32>;

struct Waiting {
    uint64_t handle;
    int format;
    Key key;
    std::vector<uint8_t> bytes;
    std::vector<CUjit_option> options;
    std::vector<void *> values;
};
struct Linked {
    uint32_t blob;
    uint64_t size;
};

std::mutex mutex; // guards the two below
std::vector<Waiting> *waiting;
std::map<Key, Linked> *done;

bool link(const Waiting &image, Linked *linked) {
    if (!real.cuLinkCreate_v2 || !real.cuLinkAddData_v2 || !real.cuLinkComplete || !real.cuLinkDestroy) return false;
    std::vector<CUjit_option> options = image.options;
    std::vector<void *> values = image.values;
    CUlinkState link_state = nullptr;
    if (real.cuLinkCreate_v2(static_cast<unsigned>(options.size()), options.data(), values.data(), &link_state) !=
        CUDA_SUCCESS)
        return false;
    CUjitInputType type = image.format == FOUNDRY_FORMAT_PTX ? CU_JIT_INPUT_PTX : CU_JIT_INPUT_FATBINARY;
    void *cubin = nullptr;
    size_t size = 0;
    bool well = real.cuLinkAddData_v2(link_state, type, const_cast<uint8_t *>(image.bytes.data()), image.bytes.size(),
                                      "image", 0, nullptr, nullptr) == CUDA_SUCCESS &&
                real.cuLinkComplete(link_state, &cubin, &size) == CUDA_SUCCESS && cubin && size;
    // The cubin belongs to the link and dies with it.
    if (well) well = spool_blob(cubin, size, &linked->blob);
    linked->size = size;
    real.cuLinkDestroy(link_state);
    return well;
}

void link_and_write(const Waiting &image) {
    Linked linked{};
    bool known = false;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (done) {
            auto found = done->find(image.key);
            known = found != done->end();
            if (known) linked = found->second;
        }
    }
    if (!known && !link(image, &linked)) {
        finding_once("link-failed", "an image without machine code for this device could not be linked to a cubin; a "
                                    "restore compiles it again");
        return;
    }
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!done) done = new std::map<Key, Linked>;
        (*done)[image.key] = linked;
    }
    Frame(FOUNDRY_EVENT_IMAGE_LINKED).u64(image.handle).u32(linked.blob).u64(linked.size).write();
}

} // namespace

void link_later(uint64_t handle, const ImageLoad &load) {
    if (load.bytes.format != FOUNDRY_FORMAT_PTX && load.bytes.format != FOUNDRY_FORMAT_FATBIN) return;
    if (image_has_code(load.bytes.data, load.bytes.size, compute_capability())) return;
    Waiting image{handle, load.bytes.format, {}, {load.bytes.data, load.bytes.data + load.bytes.size}, {}, {}};
    memcpy(image.key.data(), load.key, image.key.size());
    for (unsigned index = 0; index < load.option_count; ++index)
        if (jit_option_plain(load.options[index])) {
            image.options.push_back(load.options[index]);
            image.values.push_back(load.values[index]);
        }
    if (capture_depth() == 0) return link_and_write(image);
    std::lock_guard<std::mutex> lock(mutex);
    if (!waiting) waiting = new std::vector<Waiting>;
    waiting->push_back(std::move(image));
}

void images_link_pending() {
    if (capture_depth() > 0) return;
    std::vector<Waiting> images;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!waiting || waiting->empty()) return;
        images.swap(*waiting);
    }
    for (const Waiting &image : images) link_and_write(image);
}

void link_forget(uint64_t handle) {
    std::lock_guard<std::mutex> lock(mutex);
    if (waiting) std::erase_if(*waiting, [handle](const Waiting &image) { return image.handle == handle; });
}

void links_forget() {
    new (&mutex) std::mutex;
    waiting = nullptr;
    done = nullptr;
}

} // namespace foundry
