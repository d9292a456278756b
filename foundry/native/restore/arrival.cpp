// The restore image of this process, which `foundry restore` may still be making behind the start of the program.
//
// FOUNDRY_BUILDING names a folder then. `ROLE.image` in it leads to where the image of a process will be, whole from
// the first moment on; a process without one gets none. `lock` is held by whoever makes the images, for as long as it
// lives. What went wrong stands in it afterwards.
#include "image.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

#include "../hook/early.h"
#include "../hook/patience.h"
#include "../hook/settings.h"

namespace foundry::restore {
namespace {

constexpr timespec between_looks{0, 1'000'000};

class Maker {
  public:
    explicit Maker(const std::string &folder) : lock_(open((folder + "/lock").c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~Maker() {
        if (lock_ >= 0) close(lock_);
    }
    Maker(const Maker &) = delete;
    Maker &operator=(const Maker &) = delete;

    // Also where there is no telling.
    bool ended() const { return flock(lock_, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

    std::string fault() const {
        char text[600];
        const ssize_t length = pread(lock_, text, sizeof text, 0);
        return {text, length > 0 ? static_cast<size_t>(length) : 0};
    }

  private:
    const int lock_;
};

bool is_link(const std::string &path) {
    char first;
    return readlink(path.c_str(), &first, 1) == 1;
}

// Why there is no image where those of other processes are; "" where there are none.
std::string absent(const std::string &path) {
    constexpr std::string_view ending = ".image";
    const std::string folder = path.substr(0, path.rfind('/')), name = path.substr(path.rfind('/') + 1);
    if (!access(path.c_str(), F_OK) || errno != ENOENT || !name.ends_with(ending)) return {};
    DIR *listed = opendir(folder.c_str());
    bool others = false;
    for (const dirent *entry; listed && (entry = readdir(listed));)
        others |= std::string_view(entry->d_name).ends_with(ending);
    if (listed) closedir(listed);
    return others ? "the archive has no process `" + name.substr(0, name.size() - ending.size()) + "`" : std::string();
}

} // namespace

ImagePointer arriving_image(const std::string &path, std::string &reason) {
    const char *building = setting("FOUNDRY_BUILDING");
    ImagePointer image = open_image(path.c_str(), reason);
    if (image) return image;
    if (!building || !*building) {
        if (std::string missing = absent(path); !missing.empty()) reason = std::move(missing);
        return image;
    }

    const std::string coming = building + path.substr(path.rfind('/'));
    const Maker maker(building);
    const auto begin = std::chrono::steady_clock::now();
    for (bool last = false;; nanosleep(&between_looks, nullptr)) {
        const auto now = std::chrono::steady_clock::now();
        for (const std::string &place : {path, coming}) {
            if (access(place.c_str(), F_OK) || !(image = open_image(place.c_str(), reason))) continue;
            image->path = path;
            image->waited = now - begin;
            reason.clear();
            return image;
        }
        if (last) break;
        if (early_leaves()) return reason.clear(), std::move(image);
        if (now - begin >= patience()) {
            reason = "the restore image is still being made after " + std::to_string(patience().count() / 1000) + " s";
            break;
        }
        last = maker.ended() || !is_link(coming); // then what it made is there to be seen
    }
    std::string fault = maker.fault();
    if (fault.empty()) fault = absent(path);
    if (!fault.empty()) reason = std::move(fault);
    return image;
}

} // namespace foundry::restore
