// Kernel images and kernels: each loaded once, by whoever needs it first.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "../abi/spool_format.h"
#include "respool.h"
#include "session.h"

namespace foundry::restore {
namespace {

constexpr size_t most_options = 64; // check_image allows no more

// What allows a launch rather than shaping it. The graphs of one function may need several values.
bool is_limit(uint32_t id) {
    return id == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
           id == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
}

// The value to set: of a limit the largest that a graph of the archive needs of this function, so that the order in
// which kernels are made ready, on any thread, does not matter.
int wanted_value(const Image &image, const foundry_image_kernel &entry, const foundry_image_attribute &attribute) {
    int wanted = attribute.value;
    if (!is_limit(attribute.id)) return wanted;
    for (const auto &other : image.kernels()) {
        if (other.image != entry.image || other.device != entry.device) continue;
        if (std::strcmp(image.string(other.name), image.string(entry.name)) != 0) continue;
        for (const auto &same : image.attributes().subspan(other.first_attribute, other.attribute_count))
            if (same.id == attribute.id) wanted = std::max(wanted, int{same.value});
    }
    return wanted;
}

} // namespace

Reason Session::ensure_image(uint32_t index) {
    ImageState &state = images[index];
    const char *provenance = image->string(image->images()[index].provenance);
    Claim claimed;
    {
        std::unique_lock<std::mutex> lock(mutex);
        // Of the whole image, not of each kernel and graph that needs it.
        if (state.program_loads && state.until == state.never)
            state.until = std::chrono::steady_clock::now() + patience();
        if (!changed.wait_until(lock, state.until, [&] { return state.work != Work::busy || !state.program_loads; }))
            return std::string("the program's own load of `") + provenance + "` does not end";
        claimed = claim(lock, state.work);
        if (claimed == Claim::ended) return state.reason;
        if (claimed == Claim::mine) state.context = context_of(image->images()[index].device, state.context_ordinal);
    }
    if (claimed == Claim::overdue) return overdue();
    ImageState loaded;
    loaded.context = state.context;
    Reason reason = load_image(index, loaded);
    if (!reason.empty()) reason = std::string("image `") + provenance + "`: " + reason;
    if (respool && reason.empty())
        respool->image_ready(index, loaded.library ? static_cast<void *>(loaded.library) : loaded.module,
                             loaded.context);
    std::lock_guard<std::mutex> lock(mutex);
    state.library = loaded.library;
    state.module = loaded.module;
    state.reason = reason;
    state.work = reason.empty() ? Work::ready : Work::failed;
    if (void *handle = loaded.library ? static_cast<void *>(loaded.library) : loaded.module)
        image_handles[handle] = index;
    changed.notify_all();
    return reason;
}

// A driver that refuses an image without the other kernels may still take the one that the program would load.
Reason Session::load_image(uint32_t index, ImageState &loaded) {
    Stopwatch watch(times.images);
    const uint32_t whole = image->images()[index].whole;
    Reason reason = load_bytes(index, loaded);
    return reason.empty() || whole == FOUNDRY_NONE ? reason : load_bytes(whole, loaded);
}

Reason Session::load_bytes(uint32_t index, ImageState &loaded) {
    const auto &entry = image->images()[index];
    const auto &blob = image->blobs()[entry.blob];
    if (!check_blob(*image, entry.blob)) {
        unlink(image->path.c_str()); // the next start builds it anew
        return "its bytes in the restore image are damaged";
    }
    const void *bytes = image->blob_bytes().data() + blob.offset;
    // Text must end in a zero byte, which the file need not have behind it.
    std::string text;
    static const unsigned char elf[4] = {0x7f, 'E', 'L', 'F'}, fatbin[4] = {0x50, 0xed, 0x55, 0xba};
    const bool binary =
        !memcmp(bytes, elf, sizeof elf) || !memcmp(bytes, fatbin, sizeof fatbin) || memchr(bytes, 0, blob.length);
    if (!binary) {
        text.assign(static_cast<const char *>(bytes), blob.length);
        bytes = text.c_str();
    }
    CUjit_option options[most_options];
    void *values[most_options];
    for (uint32_t at = 0; at < entry.option_count; at++) {
        const auto &option = image->image_options()[entry.first_option + at];
        options[at] = static_cast<CUjit_option>(option.option);
        values[at] = reinterpret_cast<void *>(option.value);
    }
    if (entry.api == FOUNDRY_API_MODULE) {
        if (!loaded.context) return "its context is not there";
        return driver_result("cuModuleLoadDataEx", drive(real.cuModuleLoadDataEx, &loaded.module, bytes,
                                                         entry.option_count, options, values));
    }
    // The mapped file stays where it is for as long as the process lives.
    CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *yes = reinterpret_cast<void *>(uintptr_t{1});
    return driver_result("cuLibraryLoadData", drive(real.cuLibraryLoadData, &loaded.library, bytes, options, values,
                                                    entry.option_count, &preserved, &yes, binary ? 1u : 0u));
}

Reason Session::ensure_kernel(uint32_t index) {
    KernelState &state = kernels[index];
    Claim claimed;
    {
        std::unique_lock<std::mutex> lock(mutex);
        claimed = claim(lock, state.work);
        if (claimed == Claim::ended) return state.reason;
    }
    if (claimed == Claim::overdue) return overdue();
    const auto &entry = image->kernels()[index];
    const uint32_t of_image = image_of(index);
    ImageState &of = images[of_image];
    {
        std::lock_guard<std::mutex> lock(mutex);
        of.users++;
    }
    KernelState loaded;
    Reason reason = ensure_image(of_image);
    if (reason.empty()) reason = load_kernel(index, loaded);
    if (!reason.empty()) reason = std::string("kernel `") + image->string(entry.name) + "`: " + reason;
    if (respool && reason.empty()) respool->kernel_ready(index, loaded);
    std::lock_guard<std::mutex> lock(mutex);
    of.users--;
    state.kernel = loaded.kernel;
    state.function = loaded.function;
    state.reason = reason;
    state.work = reason.empty() ? Work::ready : Work::failed;
    changed.notify_all();
    return reason;
}

Reason Session::load_kernel(uint32_t index, KernelState &loaded) {
    Stopwatch watch(times.kernels);
    const auto &entry = image->kernels()[index];
    ImageState &of = images[image_of(index)];
    CUlibrary library;
    CUmodule module;
    {
        std::lock_guard<std::mutex> lock(mutex);
        library = of.library;
        module = of.module;
    }
    const char *name = image->string(entry.name);
    CUresult result = library ? drive(real.cuLibraryGetKernel, &loaded.kernel, library, name)
                              : drive(real.cuModuleGetFunction, &loaded.function, module, name);
    if (result) return driver_error(library ? "cuLibraryGetKernel" : "cuModuleGetFunction", result);

    // A layout other than the recorded one would put every later parameter at a wrong place.
    for (uint32_t at = 0; at <= entry.parameter_count; at++) {
        size_t offset = 0, size = 0;
        result = library ? drive(real.cuKernelGetParamInfo, loaded.kernel, size_t{at}, &offset, &size)
                         : drive(real.cuFuncGetParamInfo, loaded.function, size_t{at}, &offset, &size);
        if (at == entry.parameter_count) {
            if (result != CUDA_ERROR_INVALID_VALUE)
                return "it takes more than the " + std::to_string(entry.parameter_count) + " parameters of the capture";
            break;
        }
        const auto &parameter = image->parameters()[entry.first_parameter + at];
        if (result) return driver_error("parameter information", result);
        if (offset != parameter.offset || size != parameter.size)
            return "parameter " + std::to_string(at) + " lies at " + std::to_string(offset) + " of " +
                   std::to_string(size) + " bytes, captured at " + std::to_string(parameter.offset) + " of " +
                   std::to_string(parameter.size);
    }

    const CUdevice device_handle = device(entry.device)->handle;
    for (const auto &attribute : image->attributes().subspan(entry.first_attribute, entry.attribute_count)) {
        const auto id = static_cast<CUfunction_attribute>(attribute.id);
        const int wanted = wanted_value(*image, entry, attribute);
        int value = 0;
        result = library ? drive(real.cuKernelGetAttribute, &value, id, loaded.kernel, device_handle)
                         : drive(real.cuFuncGetAttribute, &value, id, loaded.function);
        if (!result && value == wanted) continue;
        result = library ? drive(real.cuKernelSetAttribute, id, int{wanted}, loaded.kernel, device_handle)
                         : drive(real.cuFuncSetAttribute, loaded.function, id, int{wanted});
        if (result) return driver_error("setting a function attribute", result);
    }
    return {};
}

} // namespace foundry::restore
