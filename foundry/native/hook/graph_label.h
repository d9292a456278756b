// How the recorder takes the name that the thread's program has given (state.h declares begin and end).
#ifndef FOUNDRY_HOOK_GRAPH_LABEL_H
#define FOUNDRY_HOOK_GRAPH_LABEL_H

namespace foundry {

// The open label of this thread, once; else two empty strings. Valid until the label ends.
bool graph_label_take(const char **set, const char **key);

} // namespace foundry

#endif
