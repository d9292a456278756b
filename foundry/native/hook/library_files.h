// The library files that the process has mapped, as the spool names them.
#ifndef FOUNDRY_HOOK_LIBRARY_FILES_H
#define FOUNDRY_HOOK_LIBRARY_FILES_H

namespace foundry {

// LIBRARIES with those that were not told yet; nothing if the loader has loaded none since the last call. Any thread,
// with no lock of the hook's held: the loader is asked. Calls no driver function.
void library_files_tell();
void library_files_forget();

} // namespace foundry

#endif
