// Streams and events: what they are, and how a handle names one. What a capture does to them: capture.h.
#pragma once

#include "graph.h"
#include "work.h"

#include <chrono>

namespace sim {

struct Capture;

constexpr int least_priority = 0, greatest_priority = -5;

struct Stream {
    CUstream handle = nullptr; // null for a context's legacy and per-thread streams
    CUcontext context = nullptr;
    int device = 0;
    unsigned flags = 0;
    int priority = 0;
    unsigned long long id = 0;
    bool legacy = false;
    CUstreamAttrValue attributes[16] = {};
    std::shared_ptr<Capture> capture;      // set while it takes part in one
    std::vector<Link> tail;                // what the next captured work depends on
    std::vector<CUgraphNode> tail_handles; // what the capture info hands out
    std::vector<CUgraphEdgeData> tail_data;
};

struct Event {
    CUevent handle = nullptr;
    CUcontext context = nullptr;
    unsigned flags = 0;
    bool recorded = false;
    std::chrono::steady_clock::time_point when;
    std::weak_ptr<Capture> capture; // of its last record
    bool captured = false;          // the last record was captured, even if that capture is over
    std::vector<Link> tail;
};

struct StreamRegistry {
    Table<CUstream, Stream> streams;
    Table<CUevent, Event> events;
    std::vector<std::shared_ptr<Capture>> captures;
};
StreamRegistry &stream_registry();

std::shared_ptr<Stream> make_stream(const Context &context, unsigned flags, int priority);

// The stream that a handle names in this call: null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD included.
CUresult resolve_stream(CUstream handle, Stream **stream);
CUresult find_event(CUevent handle, std::shared_ptr<Event> *event);

} // namespace sim
