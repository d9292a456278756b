// Calls that are forwarded and noted as something a restore cannot bring back.
#include "../table/note.h"

#include <atomic>

#include "counters.h"
#include "spool.h"
#include "state.h"

namespace foundry {

void note_flagged(RowId row) {
    static std::atomic<bool> noted[row_count];
    if (!armed()) return;
    // Every CUDA runtime asks for private tables; how often is worth a number, not a finding.
    if (row == row_cuGetExportTable) return count(counters.export_tables);
    if (!noted[row].exchange(true, std::memory_order_relaxed))
        finding("unsupported-function", "%s was called; a restore cannot bring back what it makes", rows[row].name);
}

} // namespace foundry
