// The restore engine as the hook's families see it. Callable from any thread; none of these throws, none may be called
// with a lock of the hook held (each may call the driver or wait for the background thread).
// Outside restore mode, and after the engine disarmed, every function answers "not mine" at once.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <cstdint>

namespace foundry {

// After the first successful cuInit, with the role known: maps and checks the image. Does nothing without FOUNDRY_IMAGE.
// False: this process is not restored, and the engine has disarmed the hook with the reason.
bool restore_open(const char *role, bool simulated, int driver_version);

// Where the arenas of a device must lie; 0 = the image does not say, any base will do.
// The engine disarms itself when restore_arena_reserved reports another base.
CUdeviceptr restore_arena_base(uint32_t device);
uint64_t restore_arena_size(uint32_t device);
// After the hook tried to reserve the range: base 0 = not had at all. Claims the graph arena's mappings.
void restore_arena_reserved(uint32_t device, CUdeviceptr base, uint64_t arena_size);

// After a context of a device came up, with its range reserved. Starts the background thread at the first that has graphs.
void restore_context_ready(CUcontext context, uint32_t device, bool primary);
// Before a context is destroyed or reset: nothing built in it is handed out any more.
void restore_context_gone(CUcontext context);

// Every allocation and free of the program in an arena, in order. `thread` is the spool's thread ordinal.
void restore_allocation(uint32_t device, uint32_t arena, CUdeviceptr address, uint64_t size, uint32_t thread);
void restore_free(uint32_t device, uint32_t arena, CUdeviceptr address, uint32_t thread);

// Before a real load by the program. True: the handle given is the engine's, with a reference taken, and nothing must be loaded.
// Every call counts as one load of that key, so each is followed by at most one restore_*_loaded of the same key.
bool restore_library_handover(const uint8_t key[32], CUlibrary *library);
bool restore_module_handover(const uint8_t key[32], CUcontext context, CUmodule *module);
// After a handover answered false and the program's own load succeeded: the engine may use that handle.
void restore_library_loaded(const uint8_t key[32], CUlibrary library);
void restore_module_loaded(const uint8_t key[32], CUcontext context, CUmodule module);
// After a handover answered false and the program's own load failed.
void restore_load_failed(const uint8_t key[32]);
// Before a real unload. True: only a reference was dropped, the driver must not be asked.
bool restore_library_unload(CUlibrary library);
bool restore_module_unload(CUmodule module);

// True for an exec that the engine owns: the program must not destroy or update it.
bool restore_owns_exec(CUgraphExec exec);

// The hook disarmed for a reason of its own: the engine stops, handles already given stay valid.
void restore_disarmed();
// First thing in a forked child: the engine's thread does not exist there, so nothing may wait for it.
void restore_forked();
// At process end: stops the background thread without waiting for a driver call in progress, prints the summary line if due.
void restore_process_end();

} // namespace foundry
