// Making and handing on physical memory.
#include "physical.h"

#include "backing.h"
#include "regions.h"
#include "shared_files.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sim {
namespace {

// One sparse file for all that was not exported: a process may hold more allocations than file descriptors.
struct SharedFile {
    int descriptor = -1;
    std::uint64_t end = 0;
    std::multimap<std::uint64_t, std::uint64_t> vacant; // size to offset
};

SharedFile &shared_file() {
    static auto *file = [] {
        auto *made = new SharedFile;
        made->descriptor = memfd_create("foundry-sim-memory", MFD_CLOEXEC);
        return made;
    }();
    return *file;
}

bool take_file_range(Physical &memory) {
    SharedFile &file = shared_file();
    if (file.descriptor < 0) return false;
    auto fit = file.vacant.find(memory.size);
    if (fit != file.vacant.end()) {
        memory.offset = fit->second;
        file.vacant.erase(fit);
    } else {
        if (ftruncate(file.descriptor, static_cast<off_t>(file.end + memory.size)) != 0) return false;
        memory.offset = file.end;
        file.end += memory.size;
    }
    memory.file = file.descriptor;
    return true;
}

void give_back_file_range(const Physical &memory) {
    fallocate(memory.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(memory.offset),
              static_cast<off_t>(memory.size));
    shared_file().vacant.emplace(memory.size, memory.offset);
}

int protection_of(const Region &region) {
    int protection = PROT_NONE;
    for (auto [location, flags] : region.access)
        protection |= flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE : PROT_READ;
    return protection;
}

// Moves the memory, where it is mapped as well, to a file of its own, which others may then map.
CUresult move_to_own_file(Physical &memory) {
    int file = make_shared_file(memory.properties.location.id, memory.size);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    if (!copy_file_range_sparse(memory.file, memory.offset, file, memory.size)) {
        close(file);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (auto &[base, region] : regions())
        if (region.physical.get() == &memory &&
            mmap(reinterpret_cast<void *>(base), region.size, protection_of(region), MAP_SHARED | MAP_FIXED, file,
                 static_cast<off_t>(region.offset)) == MAP_FAILED) {
            close(file);
            return CUDA_ERROR_UNKNOWN;
        }
    give_back_file_range(memory);
    memory.file = file;
    memory.offset = 0;
    memory.own_file = true;
    return CUDA_SUCCESS;
}

void spoil_file_range(const Physical &memory) {
    void *window =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file, static_cast<off_t>(memory.offset));
    if (window == MAP_FAILED) return;
    spoil(window, 4096);
    munmap(window, 4096);
}

} // namespace

Table<CUmemGenericAllocationHandle, Physical> &physicals() {
    static auto *all = new Table<CUmemGenericAllocationHandle, Physical>;
    return *all;
}

bool valid_location(const CUmemLocation &location) {
    switch (static_cast<int>(location.type)) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return find_device(location.id) != nullptr;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return true;
    default:
        return false;
    }
}

Physical::~Physical() {
    if (file < 0) return;
    if (own_file)
        close(file);
    else
        give_back_file_range(*this);
    if (device >= 0) find_device(device)->used -= size;
}

} // namespace sim

using sim::Device;
using sim::Physical;

CUresult sim::cuMemGetAllocationGranularity(size_t *result, const CUmemAllocationProp *prop,
                                            CUmemAllocationGranularity_flags) {
    if (!result || !prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || !valid_location(prop->location))
        return CUDA_ERROR_INVALID_VALUE;
    *result = granularity;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                          unsigned long long flags) {
    if (!handle || !prop || flags != 0 || size == 0 || !aligned(size) || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        !valid_location(prop->location))
        return CUDA_ERROR_INVALID_VALUE;
    if ((static_cast<int>(prop->requestedHandleTypes) & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    auto memory = std::make_shared<Physical>();
    memory->size = size;
    memory->properties = *prop;
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        Device &device = *find_device(prop->location.id);
        if (size > device.limit || device.used > device.limit - size) return CUDA_ERROR_OUT_OF_MEMORY;
        if (!take_file_range(*memory)) return CUDA_ERROR_OUT_OF_MEMORY;
        device.used += size;
        memory->device = device.ordinal;
    } else if (!take_file_range(*memory)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    spoil_file_range(*memory);
    *handle = physicals().add(memory);
    return CUDA_SUCCESS;
}

CUresult sim::cuMemRelease(CUmemGenericAllocationHandle handle) {
    Physical *memory = physicals().find(handle);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    if (--memory->references == 0) physicals().remove(handle); // mappings keep the memory itself
    return CUDA_SUCCESS;
}

CUresult sim::cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle) {
    Physical *memory = physicals().find(handle);
    if (!prop || !memory) return CUDA_ERROR_INVALID_VALUE;
    *prop = memory->properties;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                           CUmemAllocationHandleType handleType, unsigned long long flags) {
    Physical *memory = physicals().find(handle);
    if (!shareableHandle || !memory || flags != 0 || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        memory->properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (!memory->own_file) SIM_TRY(move_to_own_file(*memory));
    int copy = fcntl(memory->file, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int *>(shareableHandle) = copy;
    return CUDA_SUCCESS;
}

CUresult sim::cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                             CUmemAllocationHandleType shHandleType) {
    if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    int file = fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(osHandle)), F_DUPFD_CLOEXEC, 0);
    struct stat status = {};
    if (file < 0 || fstat(file, &status) != 0 || status.st_size <= 0 ||
        !aligned(static_cast<std::uint64_t>(status.st_size))) {
        if (file >= 0) close(file);
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto memory = std::make_shared<Physical>();
    memory->size = static_cast<std::uint64_t>(status.st_size);
    memory->file = file;
    memory->own_file = true;
    memory->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory->properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    memory->properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    memory->properties.location.id = device_of_shared_file(file);
    *handle = physicals().add(memory);
    return CUDA_SUCCESS;
}
