// Included before everything else in the hook's translation units: binds the names that glibc 2.33 to 2.35 gave a new
// version to their old ones, so that the library loads from glibc 2.31 on. Names that a unit does not use leave no
// trace.
#ifndef FOUNDRY_TABLE_GLIBC_FLOOR_H
#define FOUNDRY_TABLE_GLIBC_FLOOR_H

#if defined(__x86_64__)
#define FOUNDRY_GLIBC_BASE "GLIBC_2.2.5"
#define FOUNDRY_GLIBC_DLADDR1 "GLIBC_2.3.3"
#define FOUNDRY_GLIBC_SETNAME "GLIBC_2.12"
#define FOUNDRY_GLIBC_CLOCKWAIT "GLIBC_2.30"
#elif defined(__aarch64__)
#define FOUNDRY_GLIBC_BASE "GLIBC_2.17"
#define FOUNDRY_GLIBC_DLADDR1 "GLIBC_2.17"
#define FOUNDRY_GLIBC_SETNAME "GLIBC_2.17"
#define FOUNDRY_GLIBC_CLOCKWAIT "GLIBC_2.30"
#endif

#ifdef FOUNDRY_GLIBC_BASE
#define FOUNDRY_OLD(name, version) __asm__(".symver " #name ", " #name "@" version);
FOUNDRY_OLD(dlopen, FOUNDRY_GLIBC_BASE)
FOUNDRY_OLD(dlclose, FOUNDRY_GLIBC_BASE)
FOUNDRY_OLD(dlerror, FOUNDRY_GLIBC_BASE)
FOUNDRY_OLD(dladdr, FOUNDRY_GLIBC_BASE)
FOUNDRY_OLD(dladdr1, FOUNDRY_GLIBC_DLADDR1)
FOUNDRY_OLD(dlinfo, FOUNDRY_GLIBC_DLADDR1)
FOUNDRY_OLD(dlvsym, FOUNDRY_GLIBC_BASE)
FOUNDRY_OLD(pthread_create, FOUNDRY_GLIBC_BASE)
FOUNDRY_OLD(pthread_join, FOUNDRY_GLIBC_BASE)
FOUNDRY_OLD(pthread_detach, FOUNDRY_GLIBC_BASE)
FOUNDRY_OLD(pthread_setname_np, FOUNDRY_GLIBC_SETNAME)
FOUNDRY_OLD(pthread_sigmask, FOUNDRY_GLIBC_BASE)
FOUNDRY_OLD(pthread_cond_clockwait, FOUNDRY_GLIBC_CLOCKWAIT)
#undef FOUNDRY_OLD
#endif

#endif
