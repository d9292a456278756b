#include "command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace foundry {

Lines strings_of(const char *path) {
    std::string content;
    char part[4096];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    for (ssize_t count; (count = read(file, part, sizeof part)) > 0;) content.append(part, static_cast<size_t>(count));
    close(file);
    Lines found;
    for (size_t at = 0; at < content.size(); at += found.back().size() + 1) found.emplace_back(content.c_str() + at);
    return found;
}

bool is_command() {
    const char *text = getenv("FOUNDRY_COMMAND");
    if (!text) return false;
    const bool self = !strncmp(text, "self:", 5), child = !strncmp(text, "child:", 6);
    if (!self && !child) return false;
    return strtol(strchr(text, ':') + 1, nullptr, 10) == (self ? getpid() : getppid());
}

uint64_t start_of(pid_t process) {
    constexpr int state_field = 3, start_field = 22; // from 1
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    // The second field is a name in brackets that may hold blanks and brackets.
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < start_field; ++field) {
        if ((at = strchr(at, ' '))) ++at;
        if (at && field + 1 == state_field && (*at == 'Z' || *at == 'X')) return 0;
    }
    return at ? strtoull(at, nullptr, 10) : 0;
}

} // namespace foundry
