// Stream capture: counted, so that memory knows; ended captures are known by their graph.
#include <mutex>
#include <new>
#include <vector>

#include "../table/call.h"
#include "arena_blocks.h"
#include "captures.h"
#include "counters.h"
#include "moments.h"
#include "pool.h"
#include "process.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

std::mutex mutex; // guards the two below
struct Capturing {
    StreamKey key;
    uint16_t thread; // that began it
};
std::vector<Capturing> *streams;
std::vector<CUgraph> *graphs;

void begun(const StreamKey &key) {
    count(counters.stream_captures);
    moment_first(Moment::first_capture);
    std::lock_guard<std::mutex> lock(mutex);
    if (!streams) streams = new std::vector<Capturing>;
    streams->push_back({key, thread_ordinal()});
}

template <typename Condition> void remove_captures(Condition condition) {
    size_t ended = 0;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (streams) ended = std::erase_if(*streams, condition);
    }
    for (; ended; --ended) capture_ended();
}

// Whether the driver still holds the stream to be capturing after an end that failed.
bool still_capturing(CUstream stream, bool per_thread) {
    auto *ask = per_thread ? real.cuStreamIsCapturing_ptsz : real.cuStreamIsCapturing;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return ask && ask(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void ended(CUstream stream, bool per_thread, CUresult result, CUgraph *graph) {
    StreamKey key = stream_key(stream, per_thread);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_ILLEGAL_STATE) {
        count(counters.captures_failed);
        Frame(FOUNDRY_EVENT_CAPTURE_FAILED).handle(stream).u32(result).write();
    }
    if (result != CUDA_SUCCESS && still_capturing(stream, per_thread)) return;
    remove_captures([&key](const Capturing &entry) { return entry.key == key; });
    if (result != CUDA_SUCCESS || !graph || !*graph) return;
    std::lock_guard<std::mutex> lock(mutex);
    if (!graphs) graphs = new std::vector<CUgraph>;
    graphs->push_back(*graph);
}

} // namespace

bool captured_graph(CUgraph graph) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!graphs) return false;
    for (CUgraph known : *graphs)
        if (known == graph) return true;
    return false;
}

bool thread_captures() {
    const uint16_t thread = thread_ordinal();
    std::lock_guard<std::mutex> lock(mutex);
    if (!streams) return false;
    for (const Capturing &entry : *streams)
        if (entry.thread == thread) return true;
    return false;
}

void captured_graph_gone(CUgraph graph) {
    std::lock_guard<std::mutex> lock(mutex);
    if (graphs) std::erase(*graphs, graph);
}

void captures_stream_gone(CUstream stream) {
    remove_captures([stream](const Capturing &entry) { return entry.key.stream == stream; });
}

void captures_context_gone(CUcontext context) {
    remove_captures([context](const Capturing &entry) { return entry.key.context == context; });
}

void captures_forget() {
    new (&mutex) std::mutex;
    streams = nullptr;
    graphs = nullptr;
}

} // namespace foundry

using namespace foundry;

// The count goes up before the driver is asked: a free that another thread makes meanwhile must not fence.
#define FOUNDRY_BEGIN_CAPTURE(symbol, per_thread, ...)                                                                 \
    if (!armed()) return DRIVER(symbol, __VA_ARGS__);                                                                  \
    capture_begun();                                                                                                   \
    CUresult result = DRIVER(symbol, __VA_ARGS__);                                                                     \
    if (result == CUDA_SUCCESS)                                                                                        \
        begun(stream_key(hStream, per_thread));                                                                        \
    else                                                                                                               \
        capture_ended();                                                                                               \
    return result

#define FOUNDRY_END_CAPTURE(symbol, per_thread)                                                                        \
    CUresult result = DRIVER(symbol, hStream, phGraph);                                                                \
    if (armed() || capture_depth() > 0) ended(hStream, per_thread, result, phGraph);                                   \
    return result

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
    FOUNDRY_BEGIN_CAPTURE(cuStreamBeginCapture_v2, false, hStream, mode);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
    FOUNDRY_BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, true, hStream, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
    FOUNDRY_BEGIN_CAPTURE(cuStreamBeginCaptureToGraph, false, hStream, hGraph, dependencies, dependencyData,
                          numDependencies, mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                          CUstreamCaptureMode mode) {
    FOUNDRY_BEGIN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz, true, hStream, hGraph, dependencies, dependencyData,
                          numDependencies, mode);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
    FOUNDRY_END_CAPTURE(cuStreamEndCapture, false);
}

CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph) {
    FOUNDRY_END_CAPTURE(cuStreamEndCapture_ptsz, true);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
    CUresult result = DRIVER(cuStreamDestroy_v2, hStream);
    if (result == CUDA_SUCCESS && (armed() || capture_depth() > 0)) {
        captures_stream_gone(hStream);
        pool_stream_gone(hStream);
    }
    return result;
}

CUresult cuGraphDestroy(CUgraph hGraph) {
    CUresult result = DRIVER(cuGraphDestroy, hGraph);
    if (result == CUDA_SUCCESS && armed()) captured_graph_gone(hGraph);
    return result;
}

} // extern "C"
