// Captures that go wrong give the driver's own errors, and leave the stream usable.
#include "sim_test.h"

#include <thread>

int main() {
    CUcontext context = start();
    TestLibrary library;
    CUfunction append = library.function("append");
    CUdeviceptr list = device_memory(256);
    Append work(list, 1);
    CUstream one = new_stream(), two = new_stream();
    CUevent event = new_event(), other = new_event();
    CUgraph graph = nullptr;

    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(one, &graph));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED));

    // Work on a side stream that is not joined.
    CHECK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuEventRecord(event, one));
    CHECK(cuStreamWaitEvent(two, event, 0));
    CHECK(work.launch(append, two));
    graph = reinterpret_cast<CUgraph>(1);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(one, &graph));
    REQUIRE(graph == nullptr);
    CHECK(work.launch(append, two));

    // Ended on a stream that only joined.
    CHECK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuEventRecord(event, one));
    CHECK(cuStreamWaitEvent(two, event, 0));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(two, &graph));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(one, &graph));

    // Two captures must not merge.
    CHECK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuStreamBeginCapture_v2(two, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuEventRecord(event, one));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(two, event, 0));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, work.launch(append, one));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(one, &graph));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(two, &graph));

    // A dependency on work outside.
    CHECK(cuEventRecord(other, two));
    CHECK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(one, other, 0));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(one, &graph));

    // A captured event cannot be waited for by the host.
    CHECK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuEventRecord(event, one));
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CHECK(cuThreadExchangeStreamCaptureMode(&relaxed));
    EXPECT(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(event));
    CHECK(cuThreadExchangeStreamCaptureMode(&relaxed));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(one, &graph));

    // The legacy stream would wait for a blocking stream that captures.
    CUstream blocking = new_stream(CU_STREAM_DEFAULT);
    CHECK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, work.launch(append, nullptr));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));

    // Another thread may end it only in relaxed mode.
    CHECK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    std::thread([&] {
        CHECK(cuCtxSetCurrent(context));
        EXPECT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, cuStreamEndCapture(one, &graph));
    }).join();
    CHECK(cuStreamEndCapture(one, &graph));
    CHECK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    std::thread([&] {
        CHECK(cuCtxSetCurrent(context));
        CHECK(cuStreamEndCapture(one, &graph));
    }).join();

    // A joined stream may end before the capture does; an origin may not.
    CUstream passing = new_stream();
    CHECK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuEventRecord(event, one));
    CHECK(cuStreamWaitEvent(passing, event, 0));
    CHECK(work.launch(append, passing));
    CHECK(cuEventRecord(other, passing));
    CHECK(cuStreamWaitEvent(one, other, 0));
    CHECK(cuStreamDestroy_v2(passing));
    CHECK(cuStreamEndCapture(one, &graph));
}
