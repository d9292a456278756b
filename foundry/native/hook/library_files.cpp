#include "library_files.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "provenance.h"
#include "spool.h"

namespace foundry {
namespace {

struct File {
    std::string path, build_id;
    bool operator<(const File &other) const {
        return path != other.path ? path < other.path : build_id < other.build_id;
    }
};

std::mutex mutex; // guards the two below
std::set<File> *told;
unsigned long long told_loads; // the loader's count of loads when it was last asked

struct Search {
    unsigned long long seen_loads, loads = 0;
    uintptr_t self; // where the hook is loaded
    std::vector<File> found;
};

// The program itself has no name here, the kernel's own object no path, and what was opened by descriptor only the
// number of that.
bool lasting_name(const char *path) {
    if (!path || !strchr(path, '/')) return false;
    for (const char *passing : {"/proc/", "/dev/fd/", "/memfd:"})
        if (!strncmp(path, passing, strlen(passing))) return false;
    return true;
}

// Runs with the loader's lock held: must not call into the loader.
int look_at(dl_phdr_info *info, size_t size, void *user) {
    auto *search = static_cast<Search *>(user);
    if (size >= offsetof(dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds) search->loads = info->dlpi_adds;
    if (search->loads && search->loads == search->seen_loads) return 1;
    if (info->dlpi_addr == search->self || !lasting_name(info->dlpi_name)) return 0;
    char build_id[129] = "";
    read_build_id(info, build_id, sizeof build_id);
    search->found.push_back({info->dlpi_name, build_id});
    return 0;
}

} // namespace

void library_files_tell() {
    if (!spool_is_open()) return;
    Dl_info self{};
    dladdr(reinterpret_cast<void *>(&library_files_tell), &self);
    Search search{};
    search.self = reinterpret_cast<uintptr_t>(self.dli_fbase);
    {
        std::lock_guard<std::mutex> lock(mutex);
        search.seen_loads = told_loads;
    }
    if (dl_iterate_phdr(look_at, &search)) return;
    std::vector<File> news;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!told) told = new std::set<File>;
        for (const File &file : search.found)
            if (told->insert(file).second) news.push_back(file);
        told_loads = search.loads;
    }
    if (news.empty()) return;
    Frame frame(FOUNDRY_EVENT_LIBRARIES);
    frame.u32(static_cast<uint32_t>(news.size()));
    for (const File &file : news) frame.str(file.path.c_str()).str(file.build_id.c_str());
    frame.write();
}

void library_files_forget() {
    new (&mutex) std::mutex;
    told = nullptr;
    told_loads = 0;
}

} // namespace foundry
