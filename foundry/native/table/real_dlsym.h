// The C library's dlsym, which the hook's own export of that name shadows.
#ifndef FOUNDRY_TABLE_REAL_DLSYM_H
#define FOUNDRY_TABLE_REAL_DLSYM_H

namespace foundry {

using DlsymFunction = void *(*)(void *handle, const char *name);

// Never null. RTLD_NEXT through it means: after this library.
DlsymFunction real_dlsym();

} // namespace foundry

#endif
