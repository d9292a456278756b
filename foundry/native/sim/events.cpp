// Events, eager and captured.
#include "capture.h"

#include <algorithm>

namespace sim {
namespace {

constexpr unsigned known_flags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

bool still_there(const std::vector<Link> &links) {
    return std::all_of(links.begin(), links.end(), [](const Link &link) { return link.node != nullptr; });
}

CUresult record(CUevent handle, CUstream stream_handle, unsigned flags) {
    std::shared_ptr<Event> event;
    SIM_TRY(find_event(handle, &event));
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(stream_handle, &stream));
    if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(refuse_implicit(*stream));
    if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
    if (flags == CU_EVENT_RECORD_EXTERNAL)
        return stream->capture ? submit(*stream, EventRecordPayload{event}) : CUDA_ERROR_ILLEGAL_STATE;
    if (!stream->capture) return do_work(EventRecordPayload{event});
    if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture = stream->capture;
    event->captured = true;
    event->tail = stream->tail;
    return CUDA_SUCCESS;
}

CUresult join(Stream &stream, const Event &event, const std::shared_ptr<Capture> &capture) {
    if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream.legacy) {
        capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream.capture && stream.capture != capture) {
        stream.capture->invalidated = capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (!stream.capture) {
        stream.capture = capture;
        stream.tail.clear();
        capture->streams.push_back(&stream);
    }
    for (const Link &link : event.tail) {
        auto same = [&](const Link &known) { return known.node == link.node; };
        if (std::none_of(stream.tail.begin(), stream.tail.end(), same)) stream.tail.push_back(link);
    }
    return CUDA_SUCCESS;
}

// Queries and waits, which a captured event has no answer for.
CUresult waitable(CUevent handle, std::shared_ptr<Event> *event) {
    SIM_TRY(find_event(handle, event));
    SIM_TRY(refuse_unsafe());
    if (!(*event)->captured) return CUDA_SUCCESS;
    if (std::shared_ptr<Capture> capture = (*event)->capture.lock()) capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
}

} // namespace

CUresult find_event(CUevent handle, std::shared_ptr<Event> *event) {
    *event = stream_registry().events.share(handle);
    return *event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

} // namespace sim

using sim::Event;
using sim::Stream;

CUresult sim::cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    bool interprocess_with_timing = (Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING);
    if (!phEvent || (Flags & ~known_flags) != 0 || interprocess_with_timing) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->context = context->handle;
    event->flags = Flags;
    *phEvent = stream_registry().events.add(event);
    return CUDA_SUCCESS;
}

CUresult sim::cuEventDestroy_v2(CUevent hEvent) {
    return stream_registry().events.remove(hEvent) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim::cuEventRecord(CUevent hEvent, CUstream hStream) {
    return record(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

CUresult sim::cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
    return record(hEvent, hStream, flags);
}

CUresult sim::cuEventQuery(CUevent hEvent) {
    std::shared_ptr<Event> event;
    return waitable(hEvent, &event);
}

CUresult sim::cuEventSynchronize(CUevent hEvent) {
    std::shared_ptr<Event> event;
    return waitable(hEvent, &event);
}

CUresult sim::cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    std::shared_ptr<Event> start, end;
    SIM_TRY(waitable(hStart, &start));
    SIM_TRY(waitable(hEnd, &end));
    if (!pMilliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (!start->recorded || !end->recorded || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    *pMilliseconds = std::chrono::duration<float, std::milli>(end->when - start->when).count();
    return CUDA_SUCCESS;
}

CUresult sim::cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    return sim::cuEventElapsedTime(pMilliseconds, hStart, hEnd);
}

CUresult sim::cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    std::shared_ptr<Event> event;
    SIM_TRY(find_event(hEvent, &event));
    if (Flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    if (Flags == CU_EVENT_WAIT_EXTERNAL)
        return stream->capture ? submit(*stream, EventWaitPayload{event}) : CUDA_ERROR_ILLEGAL_STATE;
    if (event->captured) {
        std::shared_ptr<Capture> capture = event->capture.lock();
        bool over = !capture || !capture->origin || capture->origin->capture != capture;
        return over || !still_there(event->tail) ? CUDA_ERROR_INVALID_VALUE : join(*stream, *event, capture);
    }
    SIM_TRY(refuse_implicit(*stream));
    if (!stream->capture) return CUDA_SUCCESS;
    if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}
