// What the table tells the hook about a call that it only forwards.
#ifndef FOUNDRY_TABLE_NOTE_H
#define FOUNDRY_TABLE_NOTE_H

#include "row.h"

namespace foundry {

// After a successful call of a function whose treatment is `flag`. Implemented by the hook.
void note_flagged(RowId row);

} // namespace foundry

#endif
