// A range that was had elsewhere than at capture: the image then speaks of addresses there. Only graphs whose addresses
// all are known, by a second capture at another base, may be used so.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "../hook/counters.h"
#include "../hook/spool.h"
#include "session.h"

namespace foundry::restore {
namespace {

// The mapping is private: what is written stays in this process. Closed again at the end.
class Opened {
  public:
    explicit Opened(const Image &image)
        : bytes_(const_cast<uint8_t *>(image.bytes)), size_(image.size),
          open_(!mprotect(bytes_, size_, PROT_READ | PROT_WRITE)) {}
    ~Opened() { mprotect(bytes_, size_, PROT_READ); }
    Opened(const Opened &) = delete;
    Opened &operator=(const Opened &) = delete;
    explicit operator bool() const { return open_; }

    void add(uint64_t at, uint64_t distance) {
        uint64_t word;
        memcpy(&word, bytes_ + at, sizeof word);
        word += distance;
        memcpy(bytes_ + at, &word, sizeof word);
    }

  private:
    uint8_t *bytes_;
    size_t size_;
    bool open_;
};

template <typename Entry>
void add_to_each(Opened &opened, const Image &image, std::span<const Entry> all, uint32_t device, uint64_t distance,
                 uint64_t Entry::*field) {
    for (const Entry &entry : all)
        if (entry.device == device)
            opened.add(static_cast<uint64_t>(reinterpret_cast<const uint8_t *>(&(entry.*field)) - image.bytes),
                       distance);
}

} // namespace

bool Session::may_move() const {
    const auto all = image->graphs();
    return std::any_of(all.begin(), all.end(), [](const auto &graph) { return graph.moves; });
}

// Before anything is placed in the range, by the one thread that reserves it. The others read nothing of what is
// written here before the range is ready.
void Session::move(uint32_t ordinal, CUdeviceptr base, size_t arena_size) {
    DeviceState *state = device(ordinal);
    const auto *device = image->device(ordinal);
    if (!state || !device || !device->base || device->base == base || device->arena_size != arena_size) return;
    const uint64_t wanted = device->base, distance = base - wanted;
    {
        Opened opened(*image);
        if (!opened) return; // the range then stands elsewhere, and the restore is given up
        add_to_each(opened, *image, image->log(), ordinal, distance, &foundry_image_log_entry::address);
        add_to_each(opened, *image, image->allocations(), ordinal, distance, &foundry_image_allocation::address);
        add_to_each(opened, *image, image->mappings(), ordinal, distance, &foundry_image_mapping::address);
        for (const auto &move : image->moves())
            if (move.device == ordinal && move.section != FOUNDRY_SECTION_STRINGS)
                opened.add(image->header().sections[move.section].offset + move.offset, distance);
        opened.add(static_cast<uint64_t>(reinterpret_cast<const uint8_t *>(&device->base) - image->bytes), distance);
    }
    finding("range-moved", "device %u: the memory at 0x%llx is not free in this process; the graphs are used at 0x%llx",
            ordinal, static_cast<unsigned long long>(wanted), static_cast<unsigned long long>(base));
    count_named("ranges_moved", 1);
    std::lock_guard<std::mutex> lock(mutex);
    state->distance = distance;
    moved = true;
    move_metadata();
    for (uint32_t at : graph_order) {
        if (image->graphs()[at].moves || graphs[at].work != Work::idle) continue;
        graphs[at].work = Work::failed;
        graphs[at].reason = "its memory is not free in this process, and there is no proof that it may lie elsewhere";
        shapes[groups[image->graphs()[at].group].shape].unbuilt--;
    }
    changed.notify_all();
}

// With the lock held. From the texts as they were captured, for a second device may have moved since the last time.
void Session::move_metadata() {
    const auto all = image->moves();
    for (uint32_t graph : graph_order) {
        const uint32_t begin = image->graphs()[graph].metadata;
        const char *text = image->string(begin);
        const uint64_t end = begin + strlen(text);
        auto move = std::lower_bound(all.begin(), all.end(), uint64_t{begin}, [](const auto &entry, uint64_t offset) {
            return entry.section == FOUNDRY_SECTION_STRINGS && entry.offset < offset;
        });
        std::string moved_text;
        uint64_t done = begin;
        for (; move != all.end() && move->section == FOUNDRY_SECTION_STRINGS && move->offset < end; ++move) {
            const char *digits = image->string(static_cast<uint32_t>(move->offset));
            char *after;
            const uint64_t value = strtoull(digits, &after, 10) + device(move->device)->distance;
            moved_text.append(image->string(static_cast<uint32_t>(done)), move->offset - done);
            moved_text += std::to_string(value);
            done = begin + static_cast<uint64_t>(after - text);
        }
        if (done == begin) continue;
        moved_text += image->string(static_cast<uint32_t>(done));
        moved_metadata[graph] = strdup(moved_text.c_str());
    }
}

const char *Session::metadata(uint32_t graph) {
    std::lock_guard<std::mutex> lock(mutex);
    auto known = moved_metadata.find(graph);
    return known == moved_metadata.end() ? image->string(image->graphs()[graph].metadata) : known->second;
}

} // namespace foundry::restore
