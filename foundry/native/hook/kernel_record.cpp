#include "kernel_record.h"

#include <stdio.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "../table/row.h"
#include "images.h"
#include "spool.h"

namespace foundry {
namespace {

using Attributes = std::vector<std::pair<uint32_t, int32_t>>;
using Seen = std::shared_ptr<const KernelSeen>;

// What the spool said last of each kernel.
struct State {
    uint64_t generation = 0;
    std::map<std::pair<uint64_t, CUdevice>, Seen> known;
};

constexpr size_t most_parameters = 4096;
constexpr CUfunction_attribute settable[] = {
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,     CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,          CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,           CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
};

std::mutex mutex;
State *state; // made on first use

// What a driver answers that does not know the thing asked for; any other error says nothing of it.
bool unknown(CUresult result) {
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED;
}

bool read_attributes(CUkernel kernel, CUfunction function, CUdevice device, Attributes *attributes) {
    for (CUfunction_attribute attribute : settable) {
        int value = 0;
        CUresult result = CUDA_ERROR_NOT_SUPPORTED;
        if (kernel && real.cuKernelGetAttribute)
            result = real.cuKernelGetAttribute(&value, attribute, kernel, device);
        else if (function && real.cuFuncGetAttribute)
            result = real.cuFuncGetAttribute(&value, attribute, function);
        if (result == CUDA_SUCCESS)
            attributes->emplace_back(static_cast<uint32_t>(attribute), value);
        else if (!unknown(result))
            return false;
    }
    return true;
}

void read_name_and_image(CUkernel kernel, CUfunction function, KernelRecord *record) {
    const char *name = nullptr;
    if (kernel && real.cuKernelGetName && real.cuKernelGetName(&name, kernel) == CUDA_SUCCESS && name)
        record->name = name;
    if (!kernel && real.cuFuncGetName && real.cuFuncGetName(&name, function) == CUDA_SUCCESS && name)
        record->name = name;

    CUlibrary library = nullptr;
    CUmodule module = nullptr;
    if (kernel && real.cuKernelGetLibrary && real.cuKernelGetLibrary(&library, kernel) == CUDA_SUCCESS)
        record->image = image_resolve(library);
    if (!kernel && real.cuFuncGetModule && real.cuFuncGetModule(&module, function) == CUDA_SUCCESS)
        record->image = image_resolve(module);

    uint64_t tracked_image;
    std::string tracked_name;
    if ((!record->image || record->name.empty()) &&
        kernel_find(kernel ? static_cast<void *>(kernel) : static_cast<void *>(function), &tracked_image,
                    &tracked_name)) {
        if (!record->image) record->image = tracked_image;
        if (record->name.empty()) record->name = tracked_name;
    }
    if (record->image && !image_known(record->image)) record->image = 0;
}

// False: the driver failed.
bool read_parameters(CUkernel kernel, CUfunction function, KernelRecord *record) {
    bool by_kernel = kernel && real.cuKernelGetParamInfo;
    if (!by_kernel && !(function && real.cuFuncGetParamInfo)) {
        int version = driver_version();
        char text[128];
        snprintf(text, sizeof text,
                 "kernel parameters cannot be read: needs a driver for CUDA 12.4 or newer, this one is for %d.%d",
                 version / 1000, version % 1000 / 10);
        record->reason = text;
        return true;
    }
    for (size_t index = 0; index < most_parameters; ++index) {
        size_t offset = 0, size = 0;
        CUresult result = by_kernel ? real.cuKernelGetParamInfo(kernel, index, &offset, &size)
                                    : real.cuFuncGetParamInfo(function, index, &offset, &size);
        if (result != CUDA_SUCCESS) return unknown(result);
        record->parameters.emplace_back(static_cast<uint32_t>(offset), static_cast<uint32_t>(size));
        record->parameter_bytes = std::max(record->parameter_bytes, static_cast<uint32_t>(offset + size));
    }
    return true;
}

void write_kernel(const KernelSeen &known) {
    Frame frame(FOUNDRY_EVENT_KERNEL);
    frame.u64(known.record.handle).u64(known.record.image).str(known.record.name.c_str());
    frame.u32(static_cast<uint32_t>(known.record.parameters.size()));
    for (auto [offset, size] : known.record.parameters) frame.u32(offset).u32(size);
    frame.u32(static_cast<uint32_t>(known.attributes.size()));
    for (auto [attribute, value] : known.attributes) frame.u32(attribute).i32(value);
    frame.write();
}

// With the lock held.
State &current_state() {
    if (!state) state = new State;
    uint64_t generation = images_generation();
    if (state->generation != generation) {
        state->known.clear();
        state->generation = generation;
    }
    return *state;
}

Seen find_known(uint64_t handle, CUdevice device) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = current_state().known.find({handle, device});
    return found == state->known.end() ? nullptr : found->second;
}

} // namespace

const KernelRecord &KernelRecorder::record(CUkernel kernel, CUfunction function) {
    uint64_t handle = kernel ? reinterpret_cast<uint64_t>(kernel) : reinterpret_cast<uint64_t>(function);
    auto place = std::lower_bound(places_.begin(), places_.end(), std::pair<uint64_t, size_t>(handle, 0));
    if (place != places_.end() && place->first == handle) return order_[place->second]->record;

    Attributes attributes;
    const bool failed = !read_attributes(kernel, function, device_, &attributes);
    Seen seen = find_known(handle, device_);
    if (failed || !seen || seen->attributes != attributes) {
        std::shared_ptr<KernelSeen> made(new KernelSeen); // make_shared would bring in the exceptions of the library
        made->failed = failed;
        if (seen) {
            made->record = seen->record;
        } else {
            made->record.handle = handle;
            read_name_and_image(kernel, function, &made->record);
            if (!read_parameters(kernel, function, &made->record)) made->failed = true;
        }
        if (made->failed) made->record.reason = "the driver failed to tell the kernel's parameters or attributes";
        made->attributes = std::move(attributes);
        seen = std::move(made);
    }
    places_.insert(place, {handle, order_.size()});
    order_.push_back(std::move(seen));
    return order_.back()->record;
}

void KernelRecorder::write() const {
    for (const Seen &seen : order_) {
        if (seen->failed) continue;
        const uint64_t handle = seen->record.handle;
        Seen known = find_known(handle, device_);
        if (known && known->attributes == seen->attributes && known->record.image == seen->record.image) continue;
        write_kernel(*seen);
        std::lock_guard<std::mutex> lock(mutex);
        current_state().known[{handle, device_}] = seen;
    }
}

void kernel_records_forget() {
    new (&mutex) std::mutex;
    state = nullptr;
}

} // namespace foundry
