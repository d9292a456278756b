// Executable graphs that the spool knows, with what was said of them already.
//
// Looking one up takes no lock and allocates nothing: it happens on every launch.
#ifndef FOUNDRY_HOOK_EXEC_TABLE_H
#define FOUNDRY_HOOK_EXEC_TABLE_H

#include "../table/real.h"

namespace foundry {

// False: the table is full.
bool exec_add(CUgraphExec exec);
bool exec_remove(CUgraphExec exec);
// True only the first time after exec_add, and never for one that was not added.
bool exec_first_launch(CUgraphExec exec);
bool exec_first_change(CUgraphExec exec);
void execs_forget();

} // namespace foundry

#endif
