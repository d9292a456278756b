// cuInit, the entry of every call, and the lock.
#include "devices.h"
#include "pools.h"

#include <cstring>
#include <unistd.h>

namespace sim {
namespace {

std::mutex &global_lock() {
    static auto *lock = new std::mutex;
    return *lock;
}

thread_local Entry *current_entry = nullptr;

bool needs_no_init(Row row) {
    switch (row) {
    case Row::cuInit:
    case Row::cuDriverGetVersion:
    case Row::cuGetErrorName:
    case Row::cuGetErrorString:
    case Row::cuGetExportTable:
    case Row::cuGetProcAddress:
    case Row::cuGetProcAddress_v2:
    case Row::cuModuleGetLoadingMode:
        return true;
    default:
        return false;
    }
}

constexpr std::uint64_t nominal_memory = 139ull << 30;

void add_devices(Driver &state) {
    const Levers &lever = levers();
    std::vector<int> ordinals;
    if (lever.visible)
        ordinals = *lever.visible;
    else
        for (int ordinal = 0; ordinal < lever.devices; ++ordinal) ordinals.push_back(ordinal);
    for (int physical : ordinals) {
        Device device;
        device.ordinal = static_cast<int>(state.devices.size());
        std::uint64_t name_hash = 0xcbf29ce484222325u;
        for (char letter : lever.gpu) name_hash = (name_hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
        name_hash ^= static_cast<std::uint64_t>(physical) << 56;
        std::memcpy(device.uuid.bytes, "SIMULATE", 8);
        std::memcpy(device.uuid.bytes + 8, &name_hash, 8);
        device.limit = lever.memory.value_or(nominal_memory);
        device.total = std::max(nominal_memory, device.limit);
        state.devices.push_back(std::move(device));
    }
    for (Device &device : state.devices) device.pool = device.default_pool = make_pool(device.ordinal);
}

} // namespace

Driver &driver() {
    static auto *state = new Driver; // never destroyed: the program may call until its last exit handler
    return *state;
}

ThreadState &thread() {
    static unsigned next = 0;
    thread_local ThreadState state{next++, {}, CU_STREAM_CAPTURE_MODE_GLOBAL};
    return state;
}

Entry::Entry(Row row, bool per_thread) : outer_(current_entry), per_thread_(per_thread) {
    if (absent(row)) {
        refusal_ = CUDA_ERROR_NOT_FOUND;
        return;
    }
    Driver &state = driver();
    if (state.initialised && state.process != getpid()) {
        refusal_ =
            CUDA_ERROR_NOT_INITIALIZED; // and no lock: another thread may have held it when this process was forked
        return;
    }
    refusal_ = injected_failure(row);
    if (refusal_ != CUDA_SUCCESS) return;
    global_lock().lock();
    locked_ = true;
    current_entry = this;
    if (!state.initialised && !needs_no_init(row)) refusal_ = CUDA_ERROR_NOT_INITIALIZED;
}

Entry::~Entry() {
    if (!locked_) return;
    current_entry = outer_;
    global_lock().unlock();
}

bool Entry::per_thread_default() {
    return current_entry && current_entry->per_thread_;
}

Unlocked::Unlocked() : entry_(current_entry) {
    current_entry = nullptr;
    global_lock().unlock();
}

Unlocked::~Unlocked() {
    global_lock().lock();
    current_entry = entry_;
}

Device *find_device(CUdevice device) {
    std::vector<Device> &devices = driver().devices;
    return device >= 0 && static_cast<std::size_t>(device) < devices.size() ? &devices[static_cast<std::size_t>(device)]
                                                                            : nullptr;
}

} // namespace sim

CUresult sim::cuInit(unsigned int Flags) {
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Driver &state = driver();
    if (state.initialised) return CUDA_SUCCESS;
    if (state.devices.empty()) add_devices(state);
    if (state.devices.empty()) return CUDA_ERROR_NO_DEVICE;
    state.process = getpid();
    state.initialised = true;
    return CUDA_SUCCESS;
}

CUresult sim::cuDriverGetVersion(int *driverVersion) {
    if (!driverVersion) return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = levers().version;
    return CUDA_SUCCESS;
}
