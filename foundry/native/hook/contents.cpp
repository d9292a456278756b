#include "contents.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "../abi/image_format.h"
#include "arena_blocks.h"
#include "captures.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

constexpr uint64_t piece_bytes = 4096;
constexpr uint64_t window_bytes = uint64_t{4} << 20;
constexpr uint64_t most_in_block = uint64_t{64} << 20;
constexpr uint64_t most_kept = uint64_t{512} << 20;
constexpr uint64_t most_read = uint64_t{8} << 30;
constexpr int64_t patience_nanoseconds = 1'000'000'000;

struct Waiting {
    CUdeviceptr address;
    uint64_t ordinal;
    bool told; // that it could not be read
};

std::mutex mutex; // guards what waits
std::vector<Waiting> *waiting;
std::atomic<bool> any_waiting{false};
std::atomic<uint64_t> bytes_read{0}, bytes_kept{0};

// FOUNDRY_CONTENTS=0: as if all such memory were written by its graphs before they read it.
bool wanted() {
    const char *asked = getenv("FOUNDRY_CONTENTS");
    return recording() && !(asked && strcmp(asked, "0") == 0);
}

// A context and a stream of its own, out of the way of captures and of the program's work.
class Aside {
  public:
    explicit Aside(CUcontext context) : result_(real.cuCtxPushCurrent_v2(context)) {
        pushed_ = result_ == CUDA_SUCCESS;
        exchanged_ = pushed_ && real.cuThreadExchangeStreamCaptureMode &&
                     real.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
        if (pushed_) result_ = real.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
        if (result_ != CUDA_SUCCESS) stream_ = nullptr;
    }
    ~Aside() {
        if (stream_) real.cuStreamDestroy_v2(stream_);
        if (exchanged_) real.cuThreadExchangeStreamCaptureMode(&mode_);
        CUcontext popped;
        if (pushed_) real.cuCtxPopCurrent_v2(&popped);
    }
    Aside(const Aside &) = delete;
    Aside &operator=(const Aside &) = delete;
    CUresult result() const { return result_; }

    CUresult clear(CUdeviceptr address, uint64_t size) {
        CUresult result = real.cuMemsetD8Async(address, 0, size, stream_);
        return result == CUDA_SUCCESS ? real.cuStreamSynchronize(stream_) : result;
    }
    CUresult read(void *bytes, CUdeviceptr address, uint64_t size) {
        CUresult result = real.cuMemcpyDtoHAsync_v2(bytes, address, size, stream_);
        return result == CUDA_SUCCESS ? real.cuStreamSynchronize(stream_) : result;
    }

  private:
    CUresult result_;
    bool pushed_ = false, exchanged_ = false;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstream stream_ = nullptr;
};

int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

// Whether all work of the context, which is current, has ended. Not waited for longer than a second where the driver
// lets that be asked: the work may wait for this very thread.
bool work_ended(CUcontext context) {
    CUevent event = nullptr;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED, destroyed;
    if (real.cuCtxRecordEvent && real.cuEventQuery &&
        real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) {
        result = real.cuCtxRecordEvent(context, event);
        if (result == CUDA_SUCCESS) {
            const int64_t until = now() + patience_nanoseconds;
            const timespec pause{0, 20'000};
            while ((result = real.cuEventQuery(event)) == CUDA_ERROR_NOT_READY && now() < until)
                nanosleep(&pause, nullptr);
        }
        destroyed = real.cuEventDestroy_v2(event);
        if (destroyed != CUDA_SUCCESS) finding_once("handle-kept", "an event could not be given back");
    }
    if (result == CUDA_SUCCESS) return true;
    if (result == CUDA_ERROR_NOT_READY) return false;
    CUresult error;
    return fence_context(context, &error);
}

bool zero(const uint8_t *bytes, uint64_t size) {
    uint64_t word, all = 0;
    uint64_t at = 0;
    for (; at + sizeof word <= size; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        all |= word;
    }
    for (; at < size; ++at) all |= bytes[at];
    return all == 0;
}

// From the first piece that is not zero to the end of the last; empty if there is none.
struct Span {
    uint64_t begin = UINT64_MAX, end = 0;
    bool empty() const { return begin >= end; }
    void look(const uint8_t *bytes, uint64_t at, uint64_t size) {
        if (zero(bytes, size)) return;
        for (uint64_t piece = 0; piece < size; piece += piece_bytes) {
            const uint64_t length = std::min(piece_bytes, size - piece);
            if (zero(bytes + piece, length)) continue;
            begin = std::min(begin, at + piece);
            end = std::max(end, at + piece + length);
        }
    }
};

void tell(CUdeviceptr address, uint64_t size, uint32_t blob, const char *why) {
    Frame(FOUNDRY_EVENT_CONTENTS).u64(address).u64(size).u32(blob).str(why).write();
}

// Why the contents are not known, "" if they are.
class Taking {
  public:
    ~Taking() { free(window_); }

    const char *take(const Block &block, bool told, Aside &aside) {
        if (bytes_read.fetch_add(block.size) + block.size > most_read) return "contents-too-large";
        if (!window_) window_ = static_cast<uint8_t *>(malloc(window_bytes));
        if (!window_) return "contents-unread";
        Span span;
        if (!each_window(block.address, 0, block.size, aside,
                         [&](uint64_t at, uint64_t size) { return span.look(window_, at, size), true; }))
            return "contents-unread";
        if (span.empty()) {
            if (told) tell(block.address, 0, FOUNDRY_NONE, "");
            return "";
        }
        const uint64_t size = span.end - span.begin;
        if (size > most_in_block || bytes_kept.fetch_add(size) + size > most_kept) return "contents-too-large";
        BlobWriter writer;
        uint32_t blob;
        if (!spool_blob_begin(&writer)) return "contents-unread";
        const bool whole = each_window(block.address, span.begin, span.end, aside,
                                       [&](uint64_t, uint64_t part) { return spool_blob_add(&writer, window_, part); });
        if (!spool_blob_end(&writer, &blob) || !whole) return "contents-unread";
        tell(block.address + span.begin, size, blob, "");
        return "";
    }

  private:
    template <typename Visit>
    bool each_window(CUdeviceptr address, uint64_t begin, uint64_t end, Aside &aside, Visit visit) {
        for (uint64_t at = begin; at < end; at += window_bytes) {
            const uint64_t size = std::min(window_bytes, end - at);
            if (aside.read(window_, address + at, size) != CUDA_SUCCESS || !visit(at, size)) return false;
        }
        return true;
    }

    uint8_t *window_ = nullptr;
};

// False: it does not stand any more.
bool find(const Waiting &entry, Block *block) {
    return arena_find(entry.address, block) && block->address == entry.address && block->ordinal == entry.ordinal;
}

struct Standing {
    Block block;
    bool told;
};

// Those that are still what they were, by context.
std::vector<Standing> standing(const std::vector<Waiting> &entries) {
    std::vector<Standing> found;
    for (const Waiting &entry : entries)
        if (Block block; find(entry, &block)) found.push_back({block, entry.told});
    std::stable_sort(found.begin(), found.end(), [](const Standing &left, const Standing &right) {
        return left.block.context < right.block.context;
    });
    return found;
}

void take_all(const std::vector<Standing> &all) {
    Taking taking;
    for (size_t begin = 0, end; begin < all.size(); begin = end) {
        const CUcontext context = all[begin].block.context;
        for (end = begin; end < all.size() && all[end].block.context == context;) ++end;
        Aside aside(context);
        const bool ready = aside.result() == CUDA_SUCCESS && work_ended(context);
        for (size_t at = begin; at < end; ++at) {
            const auto &[block, told] = all[at];
            const char *why = ready ? taking.take(block, told, aside) : "contents-unread";
            if (*why) tell(block.address, block.size, FOUNDRY_NONE, why);
        }
    }
}

} // namespace

void contents_allocated(const Block &block, bool clear) {
    if (recording() && !thread_captures()) {
        // In a restore there is no capture to allocate it in: the program has it elsewhere.
        tell(block.address, block.size, FOUNDRY_NONE, "contents-foreign");
        return;
    }
    if (!wanted()) return;
    if (clear) {
        Aside aside(block.context);
        // What is left in it then is taken for the program's.
        if (aside.result() == CUDA_SUCCESS) aside.clear(block.address, block.size);
    }
    std::lock_guard<std::mutex> lock(mutex);
    if (!waiting) waiting = new std::vector<Waiting>;
    waiting->push_back({block.address, block.ordinal, false});
    any_waiting.store(true, std::memory_order_release);
}

void contents_take() {
    if (!any_waiting.load(std::memory_order_acquire) || !wanted()) return;
    std::vector<Waiting> mine;
    {
        std::lock_guard<std::mutex> lock(mutex);
        mine.swap(*waiting);
        any_waiting.store(false, std::memory_order_release);
    }
    if (still_begin()) {
        take_all(standing(mine));
        still_end();
        return;
    }
    for (Waiting &entry : mine) {
        Block block;
        if (entry.told || !find(entry, &block)) continue;
        tell(block.address, block.size, FOUNDRY_NONE, "contents-unread");
        entry.told = true;
    }
    std::lock_guard<std::mutex> lock(mutex);
    waiting->insert(waiting->end(), mine.begin(), mine.end());
    any_waiting.store(true, std::memory_order_release);
}

void contents_tell(CUdeviceptr address, const uint8_t *bytes, uint64_t size) {
    Span span;
    span.look(bytes, 0, size);
    uint32_t blob;
    if (!span.empty() && spool_blob(bytes + span.begin, span.end - span.begin, &blob))
        tell(address + span.begin, span.end - span.begin, blob, "");
}

void contents_forget() {
    new (&mutex) std::mutex;
    waiting = nullptr;
    any_waiting.store(false);
    bytes_read.store(0);
    bytes_kept.store(0);
}

} // namespace foundry
