#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <new>

#include "../table/call.h"
#include "counters.h"
#include "hold.h"
#include "moments.h"
#include "process.h"
#include "role.h"
#include "settings.h"
#include "spool.h"

namespace foundry {

namespace detail {
std::atomic<bool> armed{false};
std::atomic<int> capture_depth{0};
std::atomic<int> scratch_depth{0};
} // namespace detail

namespace {

enum class Life : uint8_t { before, standing, inert };

std::mutex life_mutex;
std::atomic<Life> life{Life::before};
std::atomic<int> asked_mode{-1};
std::atomic<bool> disarmed{false};
char reason_text[704];
char role_name[256];
char folder[4096];

std::atomic<unsigned> next_thread{1};
std::atomic<bool> first_thread{false};
__thread unsigned thread_number __attribute__((tls_model("initial-exec")));
__thread int inside_depth __attribute__((tls_model("initial-exec")));

void set_reason(const char *reason) {
    snprintf(reason_text, sizeof reason_text, "%s", reason);
}

// The one line for whoever started the program. A capture's is told by its parent, from the status file.
void tell_given_up(const char *reason) {
    if (mode() != FOUNDRY_MODE_RESTORE || quiet()) return;
    char line[800];
    int length = snprintf(line, sizeof line, "foundry: warning: restore given up: %.700s\n", reason);
    if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) return;
}

// Gives up before anything was written.
bool stay_inert(const char *reason) {
    set_reason(reason);
    status_line("disarmed", reason);
    tell_given_up(reason);
    life.store(Life::inert, std::memory_order_release);
    if (mode() == FOUNDRY_MODE_RESTORE) hold(reason);
    return false;
}

} // namespace

int mode() {
    int now = asked_mode.load(std::memory_order_relaxed);
    if (now >= 0) return now;
    const char *text = setting("FOUNDRY_MODE");
    now = FOUNDRY_MODE_OFF;
    if (text && strcmp(text, "capture") == 0) now = FOUNDRY_MODE_CAPTURE;
    if (text && strcmp(text, "restore") == 0) now = FOUNDRY_MODE_RESTORE;
    asked_mode.store(now, std::memory_order_relaxed);
    return now;
}

bool quiet() {
    const char *asked = setting("FOUNDRY_QUIET");
    return asked && strcmp(asked, "1") == 0;
}

bool respools() {
    const char *asked = setting("FOUNDRY_RESPOOL");
    return asked && strcmp(asked, "1") == 0;
}

bool recording() {
    return armed() && (mode() == FOUNDRY_MODE_CAPTURE || respools());
}

bool arm() {
    if (armed()) return true;
    if (mode() == FOUNDRY_MODE_OFF) return false;
    int saved_errno = errno;
    std::lock_guard<std::mutex> lock(life_mutex);
    if (life.load(std::memory_order_acquire) != Life::before) return life.load() == Life::standing;

    bool standing = false;
    std::string beside;
    if (bind_state() == Bind::refused) {
        char text[512];
        snprintf(text, sizeof text, "driver %d.%d does not match the list of functions: %s", driver_version() / 1000,
                 driver_version() % 1000 / 10, bind_problem());
        stay_inert(text);
    } else if (!spools()) {
        role_expected(role_name, sizeof role_name);
        standing = true;
    } else if (const char *session = setting("FOUNDRY_SPOOL"); !session || !*session) {
        stay_inert("FOUNDRY_SPOOL is not set");
    } else if (int error = role_claim(session, role_name, sizeof role_name, folder, sizeof folder, beside)) {
        char text[512];
        snprintf(text, sizeof text, "no folder could be made under `%.300s`: %s", session, strerror(error));
        stay_inert(text);
    } else if (!spool_open(folder, &error)) {
        char text[512];
        snprintf(text, sizeof text, "`%.300s/events` could not be made: %s", folder, strerror(error));
        stay_inert(text);
    } else {
        standing = true;
    }
    if (standing) {
        if (!beside.empty())
            finding("ambiguous-process", "`%s` ran beside it, with the same rank, name and arguments", beside.c_str());
        process_watch();
        life.store(Life::standing, std::memory_order_release);
        detail::armed.store(true, std::memory_order_release);
        status_line("armed", "");
    }
    errno = saved_errno;
    return standing;
}

void disarm(const char *reason) {
    if (disarmed.exchange(true)) return;
    set_reason(reason);
    detail::armed.store(false, std::memory_order_release);
    finding("disarmed", "%s", reason);
    status_line("disarmed", reason);
    tell_given_up(reason);
    if (mode() == FOUNDRY_MODE_RESTORE) hold(reason);
}

const char *disarm_reason() {
    return disarmed.load(std::memory_order_acquire) || life.load(std::memory_order_acquire) == Life::inert ? reason_text
                                                                                                           : "";
}

const char *role() {
    return role_name;
}
const char *spool_folder() {
    return folder;
}

void status_line(const char *state, const char *reason) {
    const char *file_name = setting("FOUNDRY_STATUS");
    if (!file_name || !*file_name) return;
    int file = open(file_name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    char line[1024];
    int length = snprintf(line, sizeof line, "%s %s %.700s", role_name[0] ? role_name : "-", state, reason);
    if (length > static_cast<int>(sizeof line) - 2) length = sizeof line - 2;
    while (length > 0 && line[length - 1] == ' ') --length;
    for (int index = 0; index < length; ++index)
        if (line[index] == '\n') line[index] = ' ';
    line[length++] = '\n';
    // One write, so that lines of several processes do not mix.
    while (write(file, line, static_cast<size_t>(length)) < 0 && errno == EINTR) {
    }
    close(file);
}

uint16_t thread_ordinal() {
    if (!thread_number) {
        unsigned ordinal = next_thread.fetch_add(1, std::memory_order_relaxed);
        thread_number = (ordinal < 65534 ? ordinal : 65534) + 1;
    }
    return static_cast<uint16_t>(thread_number - 1);
}

void thread_begins() {
    if (!first_thread.exchange(true, std::memory_order_relaxed) && !thread_number) thread_number = 1;
}

bool scratch_end() {
    int now = detail::scratch_depth.load(std::memory_order_acquire);
    while (now > 0)
        if (detail::scratch_depth.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel)) return true;
    return false;
}

Inside::Inside() {
    ++inside_depth;
}
Inside::~Inside() {
    --inside_depth;
}
bool inside_hook() {
    return inside_depth > 0;
}

void state_forget() {
    new (&life_mutex) std::mutex;
    detail::armed.store(false);
    detail::capture_depth.store(0);
    detail::scratch_depth.store(0);
    disarmed.store(false);
    life.store(Life::before);
    counters_forget();
    moments_forget();
    next_thread.store(1);
    first_thread.store(false);
    thread_number = 0;
    role_name[0] = folder[0] = 0;
}

} // namespace foundry
