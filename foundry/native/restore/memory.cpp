// Device memory of a restore: what the engine claims and maps itself, and whether the program's own allocations are
// where they were.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "../hook/state.h"
#include "session.h"

namespace foundry::restore {
namespace {

std::string hexadecimal(uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::string sized(uint64_t address, uint64_t size) {
    return hexadecimal(address) + " of " + std::to_string(size) + " bytes";
}

std::string words(bool freed, uint64_t address, uint64_t size, unsigned thread) {
    return (freed ? "a free of " + hexadecimal(address) : "an allocation at " + sized(address, size)) + " by thread " +
           std::to_string(thread);
}

// "entry 7 (after graph `decode` `16`)"
std::string entry_name(const Image &image, size_t number, const foundry_image_log_entry &entry) {
    const char *where = image.string(entry.where);
    return "entry " + std::to_string(number) + (*where ? " (" + std::string(where) + ")" : "");
}

struct Range {
    CUdeviceptr begin, end;
};

// The engine's allocations on a device, those that overlap (one lived after the other) as one.
std::vector<Range> restored_ranges(const Image &image, uint32_t device) {
    std::vector<Range> ranges;
    for (const auto &entry : image.allocations())
        if (entry.restored && entry.device == device) ranges.push_back({entry.address, entry.address + entry.size});
    std::sort(ranges.begin(), ranges.end(),
              [](const Range &left, const Range &right) { return left.begin < right.begin; });
    std::vector<Range> merged;
    for (const Range &range : ranges) {
        if (!merged.empty() && range.begin < merged.back().end)
            merged.back().end = std::max(merged.back().end, range.end);
        else
            merged.push_back(range);
    }
    return merged;
}

} // namespace

void Session::claim_ranges(DeviceState &state) {
    std::vector<std::pair<CUdeviceptr, CUdeviceptr>> failed;
    for (const Range &range : restored_ranges(*image, state.ordinal))
        if (!arena_claim(state.ordinal, range.begin, range.end - range.begin))
            failed.emplace_back(range.begin, range.end);
    std::lock_guard<std::mutex> lock(mutex);
    unclaimed.insert(unclaimed.end(), failed.begin(), failed.end());
}

Reason Session::ensure_memory(uint32_t ordinal, CUcontext context) {
    DeviceState &state = *device(ordinal);
    std::vector<std::pair<CUdeviceptr, CUdeviceptr>> lost;
    Claim claimed;
    {
        std::unique_lock<std::mutex> lock(mutex);
        claimed = claim(lock, state.memory);
        if (claimed == Claim::ended) return state.memory_reason;
        lost = unclaimed;
    }
    if (claimed == Claim::overdue) return overdue();
    auto ours = [&](CUdeviceptr begin, CUdeviceptr end) {
        return std::none_of(lost.begin(), lost.end(),
                            [&](const auto &range) { return begin < range.second && range.first < end; });
    };
    Stopwatch watch(times.map);
    Reason reason;
    CUstream stream = nullptr;
    auto check = [&](const char *function, CUresult result) {
        if (result && reason.empty()) reason = driver_error(function, result);
        return reason.empty();
    };
    Entered entered(context);
    check("cuCtxPushCurrent", entered.result());
    for (const auto &mapping : image->mappings())
        if (mapping.device == ordinal && reason.empty())
            check("mapping device memory", arena_map(ordinal, mapping.address, mapping.size));
    const auto ranges = restored_ranges(*image, ordinal);
    if (reason.empty() && !ranges.empty() &&
        check("cuStreamCreate", drive(real.cuStreamCreate, &stream, static_cast<unsigned>(CU_STREAM_NON_BLOCKING)))) {
        for (const Range &range : ranges) {
            if (ours(range.begin, range.end) &&
                !check("cuMemsetD8Async", drive(real.cuMemsetD8Async, range.begin, static_cast<unsigned char>(0),
                                                size_t{range.end - range.begin}, stream)))
                break;
        }
        for (const auto &mapping : image->mappings()) {
            if (mapping.device != ordinal || mapping.contents == FOUNDRY_NONE || !reason.empty()) continue;
            const auto &blob = image->blobs()[mapping.contents];
            const void *bytes = image->blob_bytes().data() + blob.offset;
            const CUdeviceptr target = mapping.address + mapping.contents_offset;
            if (!check_blob(*image, mapping.contents)) {
                unlink(image->path.c_str());
                reason = "the contents of memory in the restore image are damaged";
                break;
            }
            if (blob.length && ours(target, target + blob.length))
                check("cuMemcpyHtoDAsync",
                      drive(real.cuMemcpyHtoDAsync_v2, target, bytes, size_t{blob.length}, stream));
        }
        CUresult waited = drive(real.cuStreamSynchronize, stream);
        check("cuStreamSynchronize", waited);
        drive(real.cuStreamDestroy_v2, stream);
    }
    std::lock_guard<std::mutex> lock(mutex);
    state.memory = reason.empty() ? Work::ready : Work::failed;
    state.memory_reason = reason;
    changed.notify_all();
    return reason;
}

bool Session::range_ready(uint32_t ordinal) {
    std::lock_guard<std::mutex> lock(mutex);
    DeviceState *state = device(ordinal);
    return state && state->range == Work::ready;
}

bool Session::log_matched(uint32_t ordinal, uint32_t entries) {
    std::lock_guard<std::mutex> lock(mutex);
    return device(ordinal)->log_position >= entries;
}

// The first reference that is not where the archive has it. A graph that had one missing is asked for that one first.
Reason Session::check_references(uint32_t index) {
    const auto &graph = image->graphs()[index];
    const auto references = image->references().subspan(graph.first_reference, graph.reference_count);
    uint32_t first;
    {
        std::lock_guard<std::mutex> lock(mutex);
        first = graphs[index].missing;
    }
    for (uint32_t step = 0; step < references.size(); step++) {
        const uint32_t at = (first + step) % static_cast<uint32_t>(references.size());
        const auto &expected = image->allocations()[references[at]];
        Reason problem;
        if (!range_ready(expected.device)) {
            problem = "the memory of device " + std::to_string(expected.device) + " is not set up yet";
        } else if (expected.restored) {
            std::lock_guard<std::mutex> lock(mutex);
            for (const auto &lost : unclaimed)
                if (expected.address >= lost.first && expected.address < lost.second)
                    problem = "memory at " + sized(expected.address, expected.size) +
                              " was taken before the archive could claim it";
        } else {
            Block block;
            if (!arena_find(expected.address, &block))
                problem = "the allocation at " + sized(expected.address, expected.size) + " was not made";
            else if (block.address != expected.address || block.size != expected.size)
                problem = "the allocation at " + sized(expected.address, expected.size) + " is now at " +
                          sized(block.address, block.size);
            else if (!log_matched(expected.device, expected.log_entries))
                problem = "several threads allocate, and not in the order of the capture, so that the memory at " +
                          sized(expected.address, expected.size) + " may be another's";
        }
        if (problem.empty()) continue;
        std::lock_guard<std::mutex> lock(mutex);
        graphs[index].missing = at;
        const Reason answer = log_answer(*device(expected.device));
        if (!answer.empty()) problem += "; " + answer;
        return problem;
    }
    return {};
}

Reason Session::log_answer(const DeviceState &state) const {
    if (!state.log_difference.empty()) return state.log_difference;
    if (state.log_position >= state.log.size()) return {};
    const auto &next = image->log()[state.log[state.log_position]];
    Reason answer = "the program has made " + std::to_string(state.log_position) + " of " +
                    std::to_string(state.log.size()) + " allocations and frees; missing is " +
                    entry_name(*image, state.log_position, next) + ": " +
                    words(next.freed, next.address, next.size, next.thread);
    return state.log_strayed.empty() ? answer : answer + "; " + state.log_strayed;
}

// The first difference is kept. It counts where several threads allocate (log_entries); else an allocation that no
// graph refers to may differ.
void Session::compare_log(const Block &block, bool freed) {
    std::lock_guard<std::mutex> lock(mutex);
    DeviceState *state = device(block.device);
    if (!state || !state->log_difference.empty()) return;
    // The record ends where the capture was stored; a program that runs on makes more.
    if (state->log_position >= state->log.size()) return;
    const auto &expected = image->log()[state->log[state->log_position]];
    const unsigned thread = thread_ordinal();
    if (block.arena != FOUNDRY_ARENA_MAIN) {
        if (!freed && !expected.freed && block.size == expected.size)
            state->log_strayed =
                std::string("one of that size was made in the ") +
                (block.arena == FOUNDRY_ARENA_SCRATCH ? "scratch arena, in a phase that a restore skips"
                                                      : "graph arena, during a capture") +
                ", by thread " + std::to_string(thread);
        return;
    }
    if (expected.address == block.address && expected.freed == (freed ? 1 : 0) &&
        (freed || expected.size == block.size)) {
        state->log_position++;
        state->log_strayed.clear();
        return;
    }
    state->log_difference = "the allocation log differs at " + entry_name(*image, state->log_position, expected) +
                            ": captured " + words(expected.freed, expected.address, expected.size, expected.thread) +
                            ", now " + words(freed, block.address, block.size, thread);
    if (!state->log_strayed.empty()) state->log_difference += "; " + state->log_strayed;
}

} // namespace foundry::restore
