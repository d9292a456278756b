#include "role.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    char base[128];
    if (const char *rank = rank_value()) {
        snprintf(role, size, "rank-%.64s", rank);
    } else {
        executable_name(base, sizeof base);
        snprintf(role, size, "%s-0", base);
    }
    make_plain(role);
}

int role_claim(const char *session, char *role, size_t role_size, char *folder, size_t folder_size) {
    char base[128];
    const char *rank = rank_value();
    if (rank) {
        snprintf(base, sizeof base, "rank-%.64s", rank);
        make_plain(base);
        snprintf(role, role_size, "%s", base);
        int error = make_folder(session, role, folder, folder_size);
        if (error != EEXIST) return error;
    } else {
        executable_name(base, sizeof base);
        make_plain(base);
    }
    // A second process of one rank (a helper that it started) gets a name of its own behind a dot.
    for (unsigned number = rank ? 1 : 0; number < most_roles; ++number) {
        snprintf(role, role_size, rank ? "%s.%u" : "%s-%u", base, number);
        int error = make_folder(session, role, folder, folder_size);
        if (error != EEXIST) return error;
    }
    return EEXIST;
}

} // namespace foundry
