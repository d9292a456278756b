// What memory that is allocated during a capture holds when its graph is made: a restore maps that memory itself, and
// must fill it with what the program put there by other means than a graph.
//
// Such memory is cleared when it is allocated. So whatever is not zero when the next graph is instantiated was written
// by the program, outside any graph: tables, descriptors, semaphores, none of which a restored program writes again.
// What graphs write there later they write again in a restore.
#ifndef FOUNDRY_HOOK_CONTENTS_H
#define FOUNDRY_HOOK_CONTENTS_H

#include <stdint.h>

#include "arena.h"

namespace foundry {

// After an allocation in the graph arena, before the program has it. `clear`: no work that still runs can reach it.
void contents_allocated(const Block &block, bool clear);

// Before a graph is told: reads what was allocated since, and writes CONTENTS where it is not zero, or where it could
// not be read. Never during a capture: what waits for its end is tried again by the next call.
void contents_take();

// Writes CONTENTS for memory that holds these bytes: those from the first piece that is not zero to the last. All zero:
// nothing is written.
void contents_tell(CUdeviceptr address, const uint8_t *bytes, uint64_t size);

void contents_forget();

} // namespace foundry

#endif
