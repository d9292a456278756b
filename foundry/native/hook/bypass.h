// Libraries whose calls do not come through the hook.
#ifndef FOUNDRY_HOOK_BYPASS_H
#define FOUNDRY_HOOK_BYPASS_H

namespace foundry {

// Looks through the loaded libraries' own tables of resolved names: one that holds the driver's address for a listed
// function, or the C library's dlsym, was bound past the hook (RTLD_DEEPBIND, or linked with -Bsymbolic to a copy). A
// finding names each, once.
void bypass_report();
void bypass_forget();

} // namespace foundry

#endif
