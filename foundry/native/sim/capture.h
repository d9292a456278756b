// Captures in progress: what they take in, and what they forbid.
#pragma once

#include "streams.h"

namespace sim {

struct Capture {
    unsigned long long id = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    unsigned thread = 0; // that began it
    Stream *origin = nullptr;
    std::vector<Stream *> streams;
    std::vector<Link> left; // last work of streams that ended before the capture
    std::shared_ptr<Graph> graph;
    bool own_graph = true; // false: the program's, from cuStreamBeginCaptureToGraph
    bool invalidated = false;
};

// Work of a stream: captured if the stream is capturing, else checked and done.
CUresult submit(Stream &stream, Payload payload);
// The same with edges of the caller's choice; gives the node that was made, or null where the work was done at once.
CUresult submit_with(Stream &stream, Payload payload, bool programmatic, Node **node);

// Before a stream ends: with its own capture if it began one, else its last captured work must still be joined by
// others.
void leave_capture(Stream &stream);

// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and the captures in question invalidated, if a call that may not be made
// during a capture is made during one that this thread's mode makes it answer for.
CUresult refuse_unsafe();
// The same for a call that waits for all of a context: any capture in it, in any mode.
CUresult refuse_while_capturing(Context &context);
// For a call that waits for one stream.
CUresult refuse_on_capturing(Stream &stream);
// For a call that uses the legacy stream, which would wait for a blocking stream that captures.
CUresult refuse_implicit(Stream &stream);

} // namespace sim
