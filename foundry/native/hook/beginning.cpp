#include "beginning.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "command.h"
#include "counters.h"
#include "role.h"
#include "state.h"

extern char **environ;

namespace foundry {
namespace {

// The driver's own, and those that say which devices there are. Loading when needed is what it does anyway.
constexpr const char *prefixes[] = {"CUDA_", "NVIDIA_"};
constexpr const char *usual = "CUDA_MODULE_LOADING=LAZY";

Lines *variables; // at the begin, sorted
std::atomic<unsigned> forks{0};
std::atomic<bool> told{false};
bool in_fork; // this process is the child of a fork

Lines of_the_driver() {
    Lines found;
    for (char **entry = environ; entry && *entry; entry++)
        for (const char *prefix : prefixes)
            if (!strncmp(*entry, prefix, strlen(prefix)) && strcmp(*entry, usual) != 0) found.emplace_back(*entry);
    std::sort(found.begin(), found.end());
    return found;
}

void forked_parent() {
    forks.fetch_add(1, std::memory_order_relaxed);
}

void forked_child() {
    in_fork = true;
    told.store(false);
}

std::vector<char *> pointers(Lines &lines) {
    std::vector<char *> found;
    for (std::string &line : lines) found.push_back(line.data());
    found.push_back(nullptr);
    return found;
}

} // namespace

void beginning_note() {
    variables = new Lines(of_the_driver());
    pthread_atfork(nullptr, forked_parent, forked_child);
}

void beginning_tell() {
    if (mode() != FOUNDRY_MODE_CAPTURE || told.exchange(true)) return;
    if (in_fork) count_named("start_in_fork", 1);
    if (!variables || in_fork) return;
    count_named("start_as_command", 1);
    if (unsigned count = forks.load(std::memory_order_relaxed)) count_named("start_forks", count);
    if (beginning_changed()) count_named("start_changed_variables", 1);
}

bool beginning_changed() {
    return variables && of_the_driver() != *variables;
}

void begin_again() {
    Lines arguments = strings_of("/proc/self/cmdline"), environment = strings_of("/proc/self/environ");
    std::erase_if(environment, [](const std::string &line) { return line.starts_with("FOUNDRY_EARLY="); });
    if (arguments.empty()) return;
    unlink((std::string(spool_folder()) + "/events").c_str());
    role_give_back(spool_folder());
    execve("/proc/self/exe", pointers(arguments).data(), pointers(environment).data());
}

} // namespace foundry
