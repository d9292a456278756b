// From what a program passes to the driver to the image's bytes and key.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "../abi/spool_format.h"
#include "images.h"

namespace foundry {

uint32_t compute_capability() {
    static std::atomic<uint32_t> known[64];
    CUdevice device = 0;
    if (!real.cuCtxGetDevice || real.cuCtxGetDevice(&device) != CUDA_SUCCESS) device = 0;
    std::atomic<uint32_t> *slot = device >= 0 && device < 64 ? &known[device] : nullptr;
    if (slot)
        if (uint32_t value = slot->load(std::memory_order_relaxed)) return value;
    int major = 0, minor = 0;
    const bool told = real.cuDeviceGetAttribute &&
                      real.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) == 0 &&
                      real.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) == 0;
    auto value = static_cast<uint32_t>(10 * major + minor);
    if (slot && told) slot->store(value, std::memory_order_relaxed);
    return value;
}

ImageLoad::~ImageLoad() {
    if (owned) munmap(owned, owned_size);
}

void ImageLoad::identify() {
    if (!known()) return;
    image_key(bytes.data, bytes.size, compute_capability(), key);
    image_key_options(key, options);
}

void ImageLoad::take_options(const CUjit_option *given, void *const *values, unsigned count) {
    for (unsigned index = 0; given && values && index < count; ++index)
        if (jit_option_plain(given[index])) options.push_back({given[index], jit_option_value(values[index])});
}

void ImageLoad::from_memory(const void *image, const CUjit_option *given, void *const *values, unsigned count) {
    take_options(given, values, count);
    bytes = image_bytes(image);
    if (known()) provenance = provenance_of(bytes.data);
    identify();
}

void ImageLoad::from_file(const char *path, const CUjit_option *given, void *const *values, unsigned count) {
    take_options(given, values, count);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    off_t size = lseek(file, 0, SEEK_END);
    if (size > 0) {
        // One byte more than the file, so that text ends with a zero; a page that the file does not reach would fault,
        // so a private copy on anonymous memory is made instead of a mapping of the file.
        owned_size = static_cast<size_t>(size) + 1;
        owned = mmap(nullptr, owned_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (owned == MAP_FAILED) owned = nullptr;
        size_t done = 0;
        while (owned && done < static_cast<size_t>(size)) {
            ssize_t got = pread(file, static_cast<char *>(owned) + done, static_cast<size_t>(size) - done,
                                static_cast<off_t>(done));
            if (got <= 0) break;
            done += static_cast<size_t>(got);
        }
        if (owned && done == static_cast<size_t>(size)) bytes = image_bytes(owned);
    }
    close(file);
    if (bytes.size > owned_size) bytes.size = 0;
    snprintf(provenance.path, sizeof provenance.path, "%s", path);
    identify();
}

} // namespace foundry
