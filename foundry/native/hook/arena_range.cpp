#include "arena_range.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>

#include "../restore/engine.h"
#include "patience.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

constexpr uint32_t most_devices = 64;
constexpr size_t gibibyte = size_t{1} << 30;
constexpr size_t tebibyte = size_t{1} << 40;
constexpr size_t least_arena = 256 * gibibyte;

// Free in ordinary processes, whatever address randomisation does. Never 0x600000000000, where position-independent
// executables may lie. Odd in their upper half: two sizes beside each other, such as 1 and 16384, would else look like
// an address of ours.
#ifdef __SANITIZE_THREAD__
constexpr CUdeviceptr candidates[] = {0x7e8500000000}; // what the sanitizer leaves, without address randomisation
#else
constexpr CUdeviceptr candidates[] = {0x403500000000, 0x203500000000, 0x303500000000, 0x503500000000, 0x103500000000};
#endif

enum class Stage : uint8_t { untried, making, standing, none };

std::atomic<Stage> stages[most_devices];
std::atomic<Range *> ranges[most_devices];

struct Device {
    char name[256];
    CUuuid uuid;
    int major, minor, multiprocessors, virtual_memory;
    size_t memory, granularity;
};

void ask(uint32_t ordinal, Device *device) {
    *device = {};
    auto handle = static_cast<CUdevice>(ordinal);
    auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        return real.cuDeviceGetAttribute && real.cuDeviceGetAttribute(&value, which, handle) == CUDA_SUCCESS ? value
                                                                                                             : 0;
    };
    if (real.cuDeviceGetName) real.cuDeviceGetName(device->name, sizeof device->name, handle);
    if (real.cuDeviceGetUuid_v2)
        real.cuDeviceGetUuid_v2(&device->uuid, handle);
    else if (real.cuDeviceGetUuid)
        real.cuDeviceGetUuid(&device->uuid, handle);
    if (real.cuDeviceTotalMem_v2) real.cuDeviceTotalMem_v2(&device->memory, handle);
    device->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    device->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    device->multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    device->virtual_memory = attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) && real.cuMemCreate &&
                             real.cuMemMap && real.cuMemUnmap && real.cuMemRelease && real.cuMemSetAccess &&
                             real.cuMemAddressReserve && real.cuMemAddressFree && real.cuMemGetAllocationGranularity;
    if (!device->virtual_memory) return;
    CUmemAllocationProp property{};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    property.location.id = handle;
    if (real.cuMemGetAllocationGranularity(&device->granularity, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
        CUDA_SUCCESS)
        device->granularity = 0;
}

size_t round_up(size_t value, size_t unit) {
    return (value + unit - 1) / unit * unit;
}

CUdeviceptr reserve_at(CUdeviceptr wanted, size_t size) {
    CUdeviceptr got = 0;
    if (real.cuMemAddressReserve(&got, size, granule_bytes, wanted, 0) != CUDA_SUCCESS) return 0;
    if (got == wanted) return got;
    real.cuMemAddressFree(got, size);
    return 0;
}

// The bases that the environment names, in hexadecimal with commas between them, are left to others: a second capture
// that is to be compared with a first must lie elsewhere.
bool avoided(CUdeviceptr base) {
    const char *text = getenv("FOUNDRY_AVOID");
    while (text && *text) {
        char *end;
        if (strtoull(text, &end, 16) == base) return true;
        if (end == text || !*end) return false;
        text = end + 1;
    }
    return false;
}

void write_device(uint32_t ordinal, const Device &device, CUdeviceptr base, size_t arena_size) {
    uint32_t flags = (device.virtual_memory ? 1 : 0) | (strstr(device.name, "MIG") ? 2 : 0);
    Frame(FOUNDRY_EVENT_DEVICE)
        .u32(ordinal)
        .str(device.name)
        .raw(&device.uuid, 16)
        .u32(static_cast<uint32_t>(device.major))
        .u32(static_cast<uint32_t>(device.minor))
        .u32(static_cast<uint32_t>(device.multiprocessors))
        .u64(device.memory)
        .u32(flags)
        .u64(base)
        .u64(base ? arena_size : 0)
        .write();
}

Range *make_range(uint32_t ordinal, CUdeviceptr wanted, size_t wanted_arena) {
    Device device;
    ask(ordinal, &device);
    size_t arena_size = wanted ? wanted_arena : std::max(least_arena, round_up(2 * device.memory, gibibyte));
    size_t size = FOUNDRY_ARENA_COUNT * arena_size;
    CUdeviceptr base = 0;
    bool able = device.virtual_memory && device.granularity && granule_bytes % device.granularity == 0;
    if (able && wanted) base = reserve_at(wanted, size);
    if (able && !base && (!wanted || restore::may_move()))
        for (CUdeviceptr candidate : candidates) {
            const CUdeviceptr place = candidate + ordinal * round_up(size, tebibyte);
            if (!avoided(place) && (base = reserve_at(place, size)) != 0) break;
        }
    if (base && wanted && base != wanted) restore::moved(ordinal, base, arena_size);
    write_device(ordinal, device, base, arena_size);
    if (!base) {
        if (!device.virtual_memory)
            finding("no-virtual-memory",
                    "device %u (`%s`) has no virtual memory management; its addresses will not come back", ordinal,
                    device.name);
        else if (!able)
            finding("no-virtual-memory",
                    "device %u (`%s`) maps memory in pieces of %zu bytes, which do not divide 2 MiB", ordinal,
                    device.name, device.granularity);
        else if (wanted && !restore::may_move())
            finding("range-taken", "device %u: the %zu GiB at 0x%llx are not free in this process", ordinal,
                    size / gibibyte, static_cast<unsigned long long>(wanted));
        else
            finding("range-taken", "device %u: none of the address ranges of %zu GiB is free in this process", ordinal,
                    size / gibibyte);
        return nullptr;
    }
    auto *range = new Range{ordinal, base, arena_size, {}, {}};
    for (Placement *&placement : range->placements) placement = new Placement(arena_size);
    return range;
}

} // namespace

bool arena_reserve(uint32_t device, CUdeviceptr base, size_t arena_size) {
    if (device >= most_devices) return false;
    Stage now = Stage::untried;
    if (!stages[device].compare_exchange_strong(now, Stage::making, std::memory_order_acq_rel)) {
        for (Turns turns; (now = stages[device].load(std::memory_order_acquire)) == Stage::making;)
            if (!turns.next()) break;
        return now == Stage::standing;
    }
    Range *range = make_range(device, base, arena_size);
    ranges[device].store(range, std::memory_order_release);
    stages[device].store(range ? Stage::standing : Stage::none, std::memory_order_release);
    return range != nullptr;
}

CUdeviceptr arena_base(uint32_t device, size_t *arena_size) {
    Range *range = range_of_device(device);
    if (arena_size) *arena_size = range ? range->arena_size : 0;
    return range ? range->base : 0;
}

Range *range_of_device(uint32_t device) {
    return device < most_devices ? ranges[device].load(std::memory_order_acquire) : nullptr;
}

Range *range_of_address(CUdeviceptr address) {
    for (auto &entry : ranges) {
        Range *range = entry.load(std::memory_order_acquire);
        if (range && address >= range->base && address - range->base < FOUNDRY_ARENA_COUNT * range->arena_size)
            return range;
    }
    return nullptr;
}

void ranges_of_devices_forget() {
    for (uint32_t device = 0; device < most_devices; ++device) {
        stages[device].store(Stage::untried);
        ranges[device].store(nullptr);
    }
}

} // namespace foundry
