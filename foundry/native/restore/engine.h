// What the hooks ask of the restore engine. Any thread; no lock of the hook's held, for each may call the driver or
// wait for the background thread. Nothing to restore, or disarmed: all answer no at once. None throws.
#ifndef FOUNDRY_RESTORE_ENGINE_H
#define FOUNDRY_RESTORE_ENGINE_H

#include <stdint.h>

#include "../hook/arena.h"
#include "../table/real.h"

namespace foundry::restore {

// The base that the archive wants for this device's range, 0 = none wanted. Called before the range is reserved. The
// first call maps and checks the image and compares the devices; what does not fit disarms the hook.
CUdeviceptr arena_base(uint32_t device);
// After the program's cuInit: begins what needs no context, behind the driver's own making of one.
void driver_ready();
// After a context was retained or created for the first time and its device's range stands. The context is current or
// not. Takes what the archive needs of the range, so it must come before the program's first allocation. A range
// elsewhere disarms.
void context_ready(CUcontext context, uint32_t device, bool primary);
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
