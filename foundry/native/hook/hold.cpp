#include "hold.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "settings.h"

namespace foundry {
namespace {

constexpr timespec parent_acts_within{10, 0};
// Long enough for a parent that looks several times a second, where the signal was another one.
constexpr timespec after_a_signal{0, 250'000'000};

} // namespace

void hold(const char *reason) {
    const char *acted_upon = setting("FOUNDRY_HOLD");
    if (!acted_upon || !*acted_upon) return;
    if (strcmp(acted_upon, "any") != 0 && strncmp(reason, acted_upon, strlen(acted_upon)) != 0) return;
    if (nanosleep(&parent_acts_within, nullptr) && errno == EINTR) nanosleep(&after_a_signal, nullptr);
}

} // namespace foundry
