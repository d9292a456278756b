#include "role.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "command.h"

namespace foundry {
namespace {

constexpr const char *rank_variables[] = {"RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};

constexpr const char *kept_variables[] = {
    "RANK",
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "WORLD_SIZE",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_ORDER",
    "CUBLAS_WORKSPACE_CONFIG",
    "PYTORCH_CUDA_ALLOC_CONF",
};

constexpr unsigned most_roles = 65536;

bool plain(char letter) {
    return (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
           letter == '.' || letter == '_' || letter == '-';
}

void make_plain(char *name) {
    for (; *name; ++name)
        if (!plain(*name)) *name = '_';
}

const char *rank_value() {
    for (const char *name : rank_variables)
        if (const char *value = getenv(name); value && *value) return value;
    return nullptr;
}

// What `multiprocessing` calls this process (`engines/site/_foundry_names.py`), null where it is not one of its own.
// The variable is inherited, so it says of which process it speaks.
const char *process_name() {
    const char *value = getenv("FOUNDRY_PROCESS");
    char *end = nullptr;
    if (!value || strtol(value, &end, 10) != getpid() || *end != ':' || !end[1]) return nullptr;
    return end + 1;
}

// Processes that a command starts side by side come to the driver in an order of chance, but differ in their arguments.
// Long numbers in these (ports, processes, times) are other ones in each run, and do not count.
uint32_t digest_of_arguments() {
    uint32_t digest = 2166136261u; // FNV-1a
    auto add = [&](char letter) { digest = (digest ^ static_cast<unsigned char>(letter)) * 16777619u; };
    Lines words = strings_of("/proc/self/cmdline");
    if (!words.empty()) words.erase(words.begin()); // the program's own name
    for (const std::string &word : words) {
        for (size_t at = 0, end; at < word.size(); at = end) {
            end = std::min(word.find_first_not_of("0123456789", at), word.size());
            if (end - at >= 4) {
                add('#');
                continue;
            }
            end = std::max(end, at + 1);
            std::for_each(word.begin() + static_cast<ptrdiff_t>(at), word.begin() + static_cast<ptrdiff_t>(end), add);
        }
        add(0);
    }
    return digest;
}

// Of the role, all but the number that tells processes of one name apart.
class Base {
  public:
    Base() {
        const char *rank = rank_value(), *name = process_name();
        of_rank_ = rank && !name;
        if (rank && name)
            snprintf(text_, sizeof text_, "rank-%.48s.%.48s", rank, name);
        else if (rank)
            snprintf(text_, sizeof text_, "rank-%.64s", rank);
        else if (name)
            snprintf(text_, sizeof text_, "%.96s", name);
        else
            executable_name(text_, sizeof text_);
        if (!rank && !name && getenv("FOUNDRY_COMMAND") && !is_command()) {
            char more[16];
            snprintf(more, sizeof more, ".%08x", digest_of_arguments());
            const size_t length = std::min(strlen(text_), sizeof text_ - sizeof more);
            snprintf(text_ + length, sizeof text_ - length, "%s", more);
        }
        make_plain(text_);
    }

    // The first of a rank needs none; a second process of it (a helper that it started) has one behind a dot.
    void name(unsigned number, char *role, size_t size) const {
        if (of_rank_ && !number)
            snprintf(role, size, "%.120s", text_);
        else
            snprintf(role, size, of_rank_ ? "%.120s.%u" : "%.120s-%u", text_, number);
    }

  private:
    char text_[128];
    bool of_rank_;
};

// In the folder of a role: of which process it is. Others of the same name compare it with themselves.
constexpr const char *identity_name = "process";

// What processes of one name that do the same have in common.
std::string likeness() {
    char executable[128], digest[16];
    executable_name(executable, sizeof executable);
    snprintf(digest, sizeof digest, "%08x", digest_of_arguments());
    return std::string(digest) + " " + executable;
}

void tell_identity(const char *folder, const std::string &like) {
    char text[256];
    const int length = snprintf(text, sizeof text, "%d %llu %s", getpid(),
                                static_cast<unsigned long long>(start_of(getpid())), like.c_str());
    const std::string path = std::string(folder) + "/" + identity_name;
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (write(file, text, static_cast<size_t>(length)) < 0) {
        // Who looks finds nothing, and takes it for one that still begins.
    }
    close(file);
}

// Whether the process that claimed a role lives, and does the same as this one. One that has just claimed it may not
// have said yet who it is.
bool lives_alike(const char *session, const char *role, const std::string &like) {
    const std::string path = std::string(session) + "/" + role + "/" + identity_name;
    Lines found;
    for (int attempt = 0; attempt < 20 && (found.empty() || found.front().empty()); ++attempt) {
        if (attempt) usleep(1000);
        found = strings_of(path.c_str());
    }
    if (found.empty() || found.front().empty()) return true;
    char *end = nullptr;
    const long process = strtol(found.front().c_str(), &end, 10);
    const unsigned long long start = strtoull(end, &end, 10);
    if (process == getpid()) return false; // it has become another program since
    const uint64_t now = start_of(static_cast<pid_t>(process));
    return now && now == start && *end == ' ' && like == end + 1;
}

int make_folder(const char *session, const char *role, char *folder, size_t size) {
    if (snprintf(folder, size, "%s/%s", session, role) >= static_cast<int>(size)) return ENAMETOOLONG;
    return mkdir(folder, 0700) == 0 ? 0 : errno;
}

} // namespace

const char *kept_variable(unsigned index) {
    return index < sizeof kept_variables / sizeof *kept_variables ? kept_variables[index] : nullptr;
}

void executable_name(char *name, size_t size) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    snprintf(name, size, "%s", *base ? base : "unknown");
}

void role_expected(char *role, size_t size) {
    Base().name(0, role, size);
}

int role_claim(const char *session, char *role, size_t role_size, char *folder, size_t folder_size,
               std::string &beside) {
    const Base base;
    int error = EEXIST;
    unsigned number = 0;
    for (; error == EEXIST && number < most_roles; ++number) {
        base.name(number, role, role_size);
        error = make_folder(session, role, folder, folder_size);
    }
    if (error) return error;
    const std::string like = likeness();
    tell_identity(folder, like);
    for (unsigned earlier = 0; earlier + 1 < number && beside.empty(); ++earlier) {
        char other[128];
        base.name(earlier, other, sizeof other);
        if (lives_alike(session, other, like)) beside = other;
    }
    return 0;
}

void role_give_back(const char *folder) {
    unlink((std::string(folder) + "/" + identity_name).c_str());
    rmdir(folder);
}

} // namespace foundry
