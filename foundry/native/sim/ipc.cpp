// Memory of cuMemAlloc, shared with other processes by handle. What cuMemMap mapped is refused, as the driver does.
#include "backing.h"
#include "memory.h"
#include "shared_files.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sim {
namespace {

constexpr std::uint64_t magic = 0x314350494d4953;

struct Handle {
    std::uint64_t magic, inode, offset, size, block;
    int process, file;
    unsigned char age;
};
static_assert(sizeof(Handle) <= CU_IPC_HANDLE_SIZE);

struct Opened {
    Handle handle;
    std::uint64_t pages;
    unsigned users;
};

// By address.
std::map<std::uint64_t, Opened> &opened() {
    static auto *all = new std::map<std::uint64_t, Opened>;
    return *all;
}

// The file that a process has under the number of the handle's; -1: it has none, or another.
int open_file_of(int process, const Handle &handle) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process, handle.file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status = {};
    if (file >= 0 && fstat(file, &status) == 0 && status.st_ino == handle.inode) return file;
    if (file >= 0) close(file);
    return -1;
}

// That of a child that outlives the owner: it inherited what the owner had open.
int open_file_of_child(const Handle &handle) {
    int file = -1;
    DIR *processes = opendir("/proc");
    for (dirent *entry; file < 0 && processes && (entry = readdir(processes));)
        if (const int process = std::atoi(entry->d_name); process > 0) file = open_file_of(process, handle);
    if (processes) closedir(processes);
    return file;
}

// The handle's file, opened anew. -1: the memory is not there any more, or its owner is not, which *error tells.
int open_file(const Handle &handle, CUresult *error) {
    const bool gone = kill(handle.process, 0) != 0 && errno == ESRCH;
    *error = gone ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    const int file = gone ? open_file_of_child(handle) : open_file_of(handle.process, handle);
    unsigned char age = 0;
    const auto at = static_cast<off_t>(age_of(handle.block, handle.offset));
    if (file < 0 || (pread(file, &age, 1, at) == 1 && age == handle.age)) return file;
    close(file);
    return -1;
}

} // namespace

void release_peer(const Region &region) {
    auto found = opened().find(region.base);
    give_back_pages(reinterpret_cast<void *>(found->second.pages), found->second.handle.block);
    opened().erase(found);
}

} // namespace sim

using sim::Context;
using sim::Region;
using sim::RegionKind;

CUresult sim::cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Region *region = region_at(dptr);
    if (!pHandle || !region || region->kind != RegionKind::device) return CUDA_ERROR_INVALID_VALUE;
    SharedPlace place;
    struct stat status = {};
    if (!share_backing(*find_device(region->device), region->base, region->size, &place) ||
        fstat(place.file, &status) != 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    Handle handle;
    std::memset(&handle, 0, sizeof handle);
    handle.magic = magic;
    handle.inode = status.st_ino;
    handle.offset = place.offset;
    handle.size = region->size;
    handle.block = place.block;
    handle.process = driver().process;
    handle.file = place.file;
    handle.age = place.age;
    std::memset(pHandle, 0, sizeof *pHandle);
    std::memcpy(pHandle->reserved, &handle, sizeof handle);
    return CUDA_SUCCESS;
}

CUresult sim::cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle bytes, unsigned int Flags) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    Handle handle;
    std::memcpy(&handle, bytes.reserved, sizeof handle);
    if (handle.magic != magic) return CUDA_ERROR_INVALID_VALUE;
    if (handle.process == driver().process) return CUDA_ERROR_INVALID_CONTEXT;
    for (auto &[address, known] : opened())
        if (std::memcmp(&known.handle, &handle, sizeof handle) == 0) {
            ++known.users;
            *pdptr = address;
            return CUDA_SUCCESS;
        }
    CUresult error = CUDA_SUCCESS;
    int file = open_file(handle, &error);
    if (file < 0) return error;
    void *pages = take_pages(handle.block);
    const bool mapped =
        pages && mmap(pages, handle.block, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == pages;
    const int device = device_of_shared_file(file);
    close(file);
    if (!mapped) {
        if (pages) give_back_pages(pages, handle.block);
        return CUDA_ERROR_MAP_FAILED;
    }
    Region region;
    region.base = reinterpret_cast<std::uint64_t>(pages) + handle.offset;
    region.size = handle.size;
    region.kind = RegionKind::peer;
    region.device = device;
    region.context = context->handle;
    add_region(region);
    opened()[region.base] = {handle, reinterpret_cast<std::uint64_t>(pages), 1};
    *pdptr = region.base;
    return CUDA_SUCCESS;
}

CUresult sim::cuIpcCloseMemHandle(CUdeviceptr dptr) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    auto found = opened().find(dptr);
    if (found == opened().end()) return CUDA_ERROR_INVALID_VALUE;
    if (--found->second.users != 0) return CUDA_SUCCESS;
    release_peer(*region_at(dptr));
    remove_region(dptr);
    return CUDA_SUCCESS;
}
