#include "shared_files.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {
namespace {

constexpr const char *prefix = "foundry-sim-shared-";

std::string name_for(const Device &device) {
    std::string name = prefix;
    for (char byte : device.uuid.bytes) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        name += digits;
    }
    return name;
}

} // namespace

int make_shared_file(int device, std::uint64_t size) {
    const Device *owner = find_device(device);
    int file = memfd_create(owner ? name_for(*owner).c_str() : prefix, MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size)) == 0) return file;
    close(file);
    return -1;
}

int device_of_shared_file(int file) {
    char path[64], name[256];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    ssize_t length = readlink(path, name, sizeof name - 1);
    name[length > 0 ? length : 0] = 0;
    for (const Device &device : driver().devices)
        if (std::strstr(name, name_for(device).c_str())) return device.ordinal;
    return 0;
}

bool copy_file_range_sparse(int from, std::uint64_t offset, int to, std::uint64_t size) {
    const off_t begin = static_cast<off_t>(offset), end = static_cast<off_t>(offset + size);
    std::vector<char> buffer(1u << 20);
    for (off_t at = lseek(from, begin, SEEK_DATA); at >= 0 && at < end; at = lseek(from, at, SEEK_DATA)) {
        const off_t hole = std::min(lseek(from, at, SEEK_HOLE), end);
        while (at < hole) {
            const auto wanted = std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(hole - at));
            const ssize_t got = pread(from, buffer.data(), wanted, at);
            if (got <= 0 || pwrite(to, buffer.data(), static_cast<std::size_t>(got), at - begin) != got) return false;
            at += got;
        }
    }
    return true;
}

} // namespace sim
