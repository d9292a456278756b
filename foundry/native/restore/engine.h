// What the hooks ask of the restore engine. Any thread; no lock of the hook's held, for each may call the driver or
// wait for the background thread. Nothing to restore, or disarmed: all answer no at once. None throws.
#ifndef FOUNDRY_RESTORE_ENGINE_H
#define FOUNDRY_RESTORE_ENGINE_H

#include <stdint.h>

#include "../hook/arena.h"
#include "../table/real.h"

namespace foundry::restore {

// The base that the archive wants for this device's range and the size of one arena, both 0 = none wanted. Called
// before the range is reserved. The first call maps and checks the image and compares the devices; what does not fit
// disarms the hook.
CUdeviceptr arena_base(uint32_t device, size_t *arena_size);
// Whether the archive proves of a graph where all its addresses stand: then a range elsewhere is worth having.
bool may_move();
// The range of a device was had elsewhere than arena_base() said, and nothing is placed in it yet: from here on the
// archive speaks of addresses there. Graphs without proof are given up.
void moved(uint32_t device, CUdeviceptr base, size_t arena_size);
// After the program's cuInit: begins what needs no context, behind the driver's own making of one.
void driver_ready();
// After a context was retained or created for the first time and its device's range stands. The context is current or
// not. Takes what the archive needs of the range, so it must come before the program's first allocation. A range
// elsewhere that the archive was not moved to disarms.
void context_ready(CUcontext context, uint32_t device, bool primary);
// The same for a primary context that the program has not asked for.
void context_before_program(CUcontext context, uint32_t device);
// Before a context is destroyed or reset: what was built in it is not handed out any more.
void context_gone(CUcontext context);

// After each allocation and each free of the program in an arena.
void allocated(const Block &block);
void freed(const Block &block);

// Before a real load; each call counts as one load of that key. True = the handle given is the engine's and goes to the
// program.
bool library_handover(const uint8_t key[32], CUlibrary *library);
bool module_handover(const uint8_t key[32], CUcontext context, CUmodule *module);
// After a real load that the same thread was told to do by a handover: its success, or its failure.
void library_loaded(const uint8_t key[32], CUlibrary library);
void module_loaded(const uint8_t key[32], CUcontext context, CUmodule module);
void load_failed(const uint8_t key[32]);
// After a load that was answered by a handover, before the spool hears of it.
void image_given(uint64_t handle);
// Before a real unload. True = only a reference was dropped: do not call the driver.
bool library_unload(CUlibrary library);
bool module_unload(CUmodule module);

// The child of a fork, before anything else of the engine: its thread does not exist there.
void forked();
// At exit, before the spool is closed. Does not wait for a driver call in progress longer than a second.
void process_end();

} // namespace foundry::restore

#endif
