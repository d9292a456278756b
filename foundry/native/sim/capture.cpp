// Stream capture: calls on a stream become nodes of a graph.
#include "capture.h"

#include <algorithm>
#include <set>

namespace sim {
namespace {

bool contains(const std::vector<Link> &links, const Node *node) {
    return std::any_of(links.begin(), links.end(), [&](const Link &link) { return link.node == node; });
}

void add_links(std::vector<Link> &to, const std::vector<Link> &from) {
    for (const Link &link : from)
        if (!contains(to, link.node)) to.push_back(link);
}

// All that the links' nodes wait for, themselves included.
std::set<const Node *> with_ancestors(const std::vector<Link> &links) {
    std::set<const Node *> seen;
    std::vector<const Node *> open;
    for (const Link &link : links) open.push_back(link.node);
    while (!open.empty()) {
        const Node *node = open.back();
        open.pop_back();
        if (!seen.insert(node).second) continue;
        for (const Link &dependency : node->dependencies) open.push_back(dependency.node);
    }
    return seen;
}

bool joined(const Capture &capture) {
    std::set<const Node *> reached = with_ancestors(capture.origin->tail);
    auto all_reached = [&](const std::vector<Link> &links) {
        return std::all_of(links.begin(), links.end(), [&](const Link &link) { return reached.contains(link.node); });
    };
    return all_reached(capture.left) && std::all_of(capture.streams.begin(), capture.streams.end(),
                                                    [&](const Stream *stream) { return all_reached(stream->tail); });
}

void end(Capture &capture) {
    std::vector<Stream *> streams = capture.streams;
    std::shared_ptr<Capture> self = capture.origin->capture;
    for (Stream *stream : streams) {
        stream->capture.reset();
        stream->tail.clear();
    }
    std::erase(stream_registry().captures, self);
}

CUresult begin(CUstream handle, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph, const std::vector<Link> &tail) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(handle, &stream));
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    static unsigned long long next_id = 1;
    auto capture = std::make_shared<Capture>();
    capture->id = next_id++;
    capture->mode = mode;
    capture->thread = thread().ordinal;
    capture->origin = stream;
    capture->streams = {stream};
    capture->own_graph = graph == nullptr;
    capture->graph = graph ? graph : make_graph();
    stream->capture = capture;
    stream->tail = tail;
    stream_registry().captures.push_back(capture);
    return CUDA_SUCCESS;
}

void hand_out_tail(Stream &stream) {
    stream.tail_handles.clear();
    stream.tail_data.clear();
    for (const Link &link : stream.tail) {
        stream.tail_handles.push_back(link.node->handle);
        stream.tail_data.push_back(link.data);
    }
}

CUresult status_of(CUstream handle, Stream **stream, CUstreamCaptureStatus *status) {
    SIM_TRY(resolve_stream(handle, stream));
    if ((*stream)->legacy) SIM_TRY(refuse_implicit(**stream));
    *status = !(*stream)->capture               ? CU_STREAM_CAPTURE_STATUS_NONE
              : (*stream)->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult capture_info(CUstream handle, CUstreamCaptureStatus *status_out, cuuint64_t *id_out, CUgraph *graph_out,
                      const CUgraphNode **dependencies_out, const CUgraphEdgeData **data_out, bool with_data,
                      std::size_t *count_out) {
    Stream *stream = nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    SIM_TRY(status_of(handle, &stream, &status));
    if (!status_out) return CUDA_ERROR_INVALID_VALUE;
    *status_out = status;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (dependencies_out && !(with_data && data_out))
        for (const Link &link : stream->tail)
            if (!plain(link.data)) return CUDA_ERROR_LOSSY_QUERY;
    hand_out_tail(*stream);
    if (id_out) *id_out = stream->capture->id;
    if (graph_out) *graph_out = stream->capture->graph->handle;
    if (dependencies_out) *dependencies_out = stream->tail_handles.data();
    if (data_out) *data_out = stream->tail_data.data();
    if (count_out) *count_out = stream->tail_handles.size();
    return CUDA_SUCCESS;
}

} // namespace

void leave_capture(Stream &stream) {
    std::shared_ptr<Capture> capture = stream.capture;
    if (!capture) return;
    if (capture->origin == &stream) {
        capture->invalidated = true;
        for (Stream *joined : capture->streams) {
            joined->tail.clear();
            joined->capture.reset();
        }
        std::erase(stream_registry().captures, capture);
        return;
    }
    capture->left.insert(capture->left.end(), stream.tail.begin(), stream.tail.end());
    std::erase(capture->streams, &stream);
    stream.capture.reset();
    stream.tail.clear();
}

CUresult refuse_unsafe() {
    CUstreamCaptureMode mine = thread().capture_mode;
    if (mine == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (const std::shared_ptr<Capture> &capture : stream_registry().captures) {
        bool of_this_thread = capture->thread == thread().ordinal && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool of_any_thread = mine == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (of_this_thread || of_any_thread) {
            capture->invalidated = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

CUresult refuse_while_capturing(Context &context) {
    CUresult result = CUDA_SUCCESS;
    for (const std::shared_ptr<Capture> &capture : stream_registry().captures)
        if (std::any_of(capture->streams.begin(), capture->streams.end(),
                        [&](Stream *stream) { return stream->context == context.handle; })) {
            capture->invalidated = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result;
}

CUresult refuse_on_capturing(Stream &stream) {
    if (!stream.capture) return CUDA_SUCCESS;
    stream.capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuse_implicit(Stream &stream) {
    if (!stream.legacy) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (const std::shared_ptr<Capture> &capture : stream_registry().captures)
        for (const Stream *captured : capture->streams)
            if (captured->context == stream.context && !(captured->flags & CU_STREAM_NON_BLOCKING)) {
                capture->invalidated = true;
                result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
            }
    return result;
}

CUresult submit(Stream &stream, Payload payload) {
    Node *node = nullptr;
    return submit_with(stream, std::move(payload), false, &node);
}

CUresult submit_with(Stream &stream, Payload payload, bool programmatic, Node **node) {
    *node = nullptr;
    SIM_TRY(refuse_implicit(stream));
    if (!stream.capture) {
        SIM_TRY(check_work(payload));
        return do_work(payload);
    }
    Capture &capture = *stream.capture;
    if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    std::vector<Link> tail = stream.tail;
    bool all_kernels = std::all_of(tail.begin(), tail.end(), [](const Link &link) {
        return std::holds_alternative<KernelPayload>(link.node->payload);
    });
    if (programmatic && all_kernels)
        for (Link &link : tail)
            if (plain(link.data))
                link.data = {CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
    CUgraphNode handle = nullptr;
    CUresult result = check_node(payload);
    if (result == CUDA_SUCCESS) result = add_node(*capture.graph, std::move(payload), tail, &handle);
    if (result != CUDA_SUCCESS) {
        capture.invalidated = true;
        return result;
    }
    *node = graph_registry().nodes.find(handle);
    stream.tail = {Link{*node, {}}};
    return CUDA_SUCCESS;
}

} // namespace sim

using sim::Graph;
using sim::Link;
using sim::Stream;

CUresult sim::cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
    return begin(hStream, mode, nullptr, {});
}

CUresult sim::cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                          CUstreamCaptureMode mode) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(hGraph, &graph));
    std::vector<Link> tail;
    SIM_TRY(find_links(*graph, dependencies, dependencyData, numDependencies, &tail));
    return begin(hStream, mode, graph_registry().graphs.share(hGraph), tail);
}

CUresult sim::cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (phGraph) *phGraph = nullptr;
    if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    std::shared_ptr<Capture> capture = stream->capture;
    if (capture->origin != stream) {
        capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread().ordinal)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : !joined(*capture)  ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                           : CUDA_SUCCESS;
    end(*capture);
    if (result != CUDA_SUCCESS) {
        if (capture->own_graph) forget_graph(*capture->graph);
        return result;
    }
    if (phGraph)
        *phGraph = capture->graph->handle;
    else if (capture->own_graph)
        forget_graph(*capture->graph);
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    Stream *stream = nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    SIM_TRY(status_of(hStream, &stream, &status));
    if (!captureStatus) return CUDA_ERROR_INVALID_VALUE;
    *captureStatus = status;
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                        CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                        size_t *numDependencies_out) {
    return capture_info(hStream, captureStatus_out, id_out, graph_out, dependencies_out, nullptr, false,
                        numDependencies_out);
}

CUresult sim::cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                        CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                        const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out) {
    return capture_info(hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, true,
                        numDependencies_out);
}

CUresult sim::cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                                   unsigned int flags) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    std::vector<Link> links;
    SIM_TRY(find_links(*stream->capture->graph, dependencies, dependencyData, numDependencies, &links));
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->tail.clear();
    add_links(stream->tail, links);
    return CUDA_SUCCESS;
}

CUresult sim::cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    std::swap(thread().capture_mode, *mode);
    return CUDA_SUCCESS;
}
