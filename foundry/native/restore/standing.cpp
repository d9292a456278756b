#include "standing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace foundry::restore {
namespace {

std::string whole_file(const char *path) {
    std::string text;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return text;
    char part[4096];
    for (ssize_t length; (length = read(file, part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(length));
    close(file);
    return text;
}

// `start-end rights offset device inode   name`; names may hold blanks.
std::string name_in(const std::string &line) {
    size_t at = 0;
    for (int field = 0; field < 5 && at != std::string::npos; ++field) {
        at = line.find(' ', at);
        if (at != std::string::npos) at = line.find_first_not_of(' ', at);
    }
    if (at == std::string::npos) return "anonymous memory";
    const std::string name = line.substr(at);
    if (name == "[heap]") return "the heap";
    if (name.rfind("[stack", 0) == 0) return "a stack";
    std::string quoted = "`";
    return quoted.append(name, name.rfind('/') + 1).append("`");
}

} // namespace

std::string who_stands_in(uint64_t begin, uint64_t end) {
    const std::string maps = whole_file("/proc/self/maps");
    for (size_t at = 0, next; at < maps.size(); at = next + 1) {
        next = maps.find('\n', at);
        if (next == std::string::npos) next = maps.size();
        const std::string line = maps.substr(at, next - at);
        char *rest;
        const uint64_t from = strtoull(line.c_str(), &rest, 16);
        const uint64_t to = *rest == '-' ? strtoull(rest + 1, nullptr, 16) : 0;
        if (from < end && to > begin) return name_in(line);
    }
    return {};
}

} // namespace foundry::restore
