// What a capture in progress forbids.
#pragma once

#include "devices.h"

namespace sim {

struct Stream;

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
