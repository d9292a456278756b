// Stream captures in progress.
#ifndef FOUNDRY_HOOK_CAPTURES_H
#define FOUNDRY_HOOK_CAPTURES_H

#include "../table/real.h"

namespace foundry {

// Whether the graph came out of cuStreamEndCapture.
bool captured_graph(CUgraph graph);
// Whether this thread began a capture that is in progress.
bool thread_captures();
// A captured graph's handle may mean another graph from here on.
void captured_graph_gone(CUgraph graph);

// What was captured on them will not be ended any more.
void captures_stream_gone(CUstream stream);
void captures_context_gone(CUcontext context);
void captures_forget();

} // namespace foundry

#endif
