// Graphs that share events: they come back together or not at all.
//
// A restored graph uses the engine's events. Were one of two graphs that name an event captured by the program instead,
// each would have an event of its own, and no order between them.
#pragma once

#include <stdint.h>

#include "session.h"

namespace foundry::restore {

// Session::wait for a graph and, before it, for every graph that is tied to it by events.
Reason wait_with_partners(Session &session, uint32_t graph);

} // namespace foundry::restore
