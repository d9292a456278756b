// Kernel images that the program has loaded, and whose kernels they are.
#ifndef FOUNDRY_HOOK_IMAGES_H
#define FOUNDRY_HOOK_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

#include "../table/real.h"
#include "image_key.h"
#include "provenance.h"

namespace foundry {

// What is known of an image before the driver sees it.
struct ImageLoad {
    ImageBytes bytes;
    uint8_t key[32] = {};
    Provenance provenance;
    std::vector<JitOption> options;
    void *owned = nullptr; // a file's bytes, released with this
    size_t owned_size = 0;

    ImageLoad() = default;
    ~ImageLoad();
    ImageLoad(const ImageLoad &) = delete;
    ImageLoad &operator=(const ImageLoad &) = delete;

    bool known() const { return bytes.size != 0; }
    void from_memory(const void *image, const CUjit_option *options, void *const *values, unsigned count);
    // Maps the file; unknown if it cannot be read.
    void from_file(const char *path, const CUjit_option *options, void *const *values, unsigned count);

  private:
    // The driver writes what it did into some values, so they are taken before it is called.
    void take_options(const CUjit_option *options, void *const *values, unsigned count);
    void identify();
};

// After a successful load, real or handed over: writes the blob if the key is new, and IMAGE.
void image_loaded(uint64_t handle, int api, const ImageLoad &load, CUcontext context, bool handed_over);
// Restore: an image that the engine has loaded. Held, so that its kernels keep their names for as long as the context
// lives, whatever the program does with it; then told, as the load of its key that the archive says it was.
void image_held(uint64_t handle, CUcontext context);
void image_restored(uint64_t handle, int api, const ImageLoad &load, CUcontext context, uint32_t instance);
// After the program gave up its reference. Writes IMAGE_GONE with the last one and forgets all kernels of the image.
void image_unloaded(uint64_t handle);
// All modules that a context owned.
void images_context_gone(CUcontext context);

// A handle that the driver gave for a kernel of an image. name may be null.
void kernel_seen(const void *handle, uint64_t image, const char *name);
// A function that stands for a kernel, or a module that stands for a library.
void alias_seen(const void *alias, const void *of);
// False: unknown. An image that is an alias is answered as what it stands for.
bool kernel_find(const void *handle, uint64_t *image, std::string *name);
uint64_t image_resolve(const void *handle);
bool image_known(uint64_t handle);
// Changes with each unload: what was remembered of kernel handles before may be wrong after.
uint64_t images_generation();

// 10 * major + minor of the current context's device, or of device 0.
uint32_t compute_capability();

} // namespace foundry

#endif
