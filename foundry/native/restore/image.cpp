#include "image.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace foundry::restore {
namespace {

void release(Image *image) {
    if (image->bytes) munmap(const_cast<uint8_t *>(image->bytes), image->size);
    delete image;
}

} // namespace

ImagePointer open_image(const char *path, std::string &reason) {
    ImagePointer image(new Image, release), none(nullptr, release);
    auto refuse = [&](const char *what) {
        reason = std::string("cannot ") + what + " `" + path + "`: " + strerror(errno);
        return std::move(none);
    };
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return refuse("open");
    struct stat status;
    if (fstat(file, &status)) {
        int error = errno;
        close(file);
        errno = error;
        return refuse("read");
    }
    if (!S_ISREG(status.st_mode) || static_cast<size_t>(status.st_size) < sizeof(foundry_image_header)) {
        close(file);
        reason =
            std::string("`") + path + "`: " + std::to_string(status.st_size) + " bytes, too short for a restore image";
        return none;
    }
    size_t size = static_cast<size_t>(status.st_size);
    void *bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    int error = errno;
    close(file);
    errno = error;
    if (bytes == MAP_FAILED) return refuse("map");
    image->bytes = static_cast<const uint8_t *>(bytes);
    image->size = size;
    image->path = path;
    madvise(bytes, size, MADV_WILLNEED);
    reason = check_image(image->bytes, size);
    if (!reason.empty()) {
        reason = std::string("`") + path + "`: " + reason;
        return none;
    }
    return image;
}

} // namespace foundry::restore
