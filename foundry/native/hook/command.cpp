#include "command.h"

#include <fcntl.h>
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

} // namespace foundry
