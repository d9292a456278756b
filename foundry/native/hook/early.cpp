#include "early.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "../restore/engine.h"
#include "../table/row.h"
#include "beginning.h"
#include "command.h"
#include "contexts.h"
#include "patience.h"
#include "role.h"
#include "state.h"
#include "threads.h"

namespace foundry {
namespace {

enum class Stage : int { none, begun, driver, ended };

constexpr int most_devices = 64;
constexpr std::chrono::seconds longest_goodbye{2};
constexpr const char *overdue = "a driver call of the early start does not come back";

std::atomic<int> stage{static_cast<int>(Stage::none)};
std::atomic<bool> leaving{false};
std::atomic<bool> held[most_devices];
// Without constructors and destructors, unlike their C++ forms.
pthread_mutex_t stage_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t stage_changed = PTHREAD_COND_INITIALIZER;

int now() {
    return stage.load(std::memory_order_acquire);
}

void reach(Stage next) {
    pthread_mutex_lock(&stage_mutex);
    stage.store(static_cast<int>(next), std::memory_order_release);
    pthread_cond_broadcast(&stage_changed);
    pthread_mutex_unlock(&stage_mutex);
}

// `ROLE:DEVICE,DEVICE`: the devices, if this process has the role.
const char *devices_for_this_process() {
    const char *text = getenv("FOUNDRY_EARLY"), *devices = text ? strrchr(text, ':') : nullptr;
    char role[256];
    role_expected(role, sizeof role);
    const bool ours = devices && strlen(role) == static_cast<size_t>(devices - text) &&
                      !strncmp(text, role, static_cast<size_t>(devices - text));
    return ours ? devices + 1 : nullptr;
}

// False: not in that time. At once where nothing was begun.
bool wait_for(Stage wanted, std::chrono::milliseconds longest) {
    if (now() == static_cast<int>(Stage::none) || now() >= static_cast<int>(wanted)) return true;
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += longest.count() / 1000;
    until.tv_nsec += longest.count() % 1000 * 1'000'000;
    if (until.tv_nsec >= 1'000'000'000) until.tv_sec++, until.tv_nsec -= 1'000'000'000;
    pthread_mutex_lock(&stage_mutex);
    while (now() < static_cast<int>(wanted))
        if (pthread_cond_timedwait(&stage_changed, &stage_mutex, &until)) break;
    pthread_mutex_unlock(&stage_mutex);
    return now() >= static_cast<int>(wanted);
}

bool on() {
    return armed() && !leaving.load();
}

void take_contexts() {
    const char *rest = devices_for_this_process();
    while (rest && *rest && on()) {
        char *end;
        const long device = strtol(rest, &end, 10);
        if (end == rest || device < 0 || device >= most_devices) return;
        CUcontext context = nullptr;
        if (real.cuDevicePrimaryCtxRetain &&
            real.cuDevicePrimaryCtxRetain(&context, static_cast<CUdevice>(device)) == CUDA_SUCCESS) {
            held[device].store(true, std::memory_order_release);
            context_before_program(context, static_cast<CUdevice>(device));
        }
        rest = *end == ',' ? end + 1 : end;
    }
}

void *run(void *) {
    Inside inside;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library) atexit(early_leave); // once more, before what the driver itself has to do at the end
    const bool initialised = library && bind_driver(library) == Bind::bound && real.cuInit && !leaving.load() &&
                             real.cuInit(0) == CUDA_SUCCESS;
    const bool standing = initialised && arm();
    if (standing) restore::driver_ready();
    reach(Stage::driver);
    if (standing) take_contexts();
    reach(Stage::ended);
    return nullptr;
}

// Forks copy this process while it is quiet, and the child has had no early start.
void before_fork() {
    wait_for(Stage::ended, longest_goodbye);
}

void in_child() {
    pthread_mutex_init(&stage_mutex, nullptr);
    pthread_cond_init(&stage_changed, nullptr);
    stage.store(static_cast<int>(Stage::none));
    for (auto &one : held) one.store(false);
}

void begin() {
    pthread_atfork(before_fork, nullptr, in_child);
    atexit(early_leave);
    stage.store(static_cast<int>(Stage::begun));
    if (!start_thread("foundry-early", run, nullptr)) stage.store(static_cast<int>(Stage::none));
}

} // namespace

void program_begins() {
    if (!is_command()) return;
    beginning_note();
    const char *asked = getenv("FOUNDRY_MODE"); // not mode(): a program may still set it
    if (asked && !strcmp(asked, "restore") && devices_for_this_process()) begin();
}

void early_wait_driver() {
    if (!early_started()) return;
    if (!wait_for(Stage::driver, patience())) return disarm(overdue);
    static std::atomic<bool> looked{false};
    if (looked.exchange(true) || !beginning_changed()) return;
    static constexpr char line[] = "foundry: warning: the program changes variables that the driver reads; it begins "
                                   "again, without an early start\n";
    if (!quiet() && write(STDERR_FILENO, line, sizeof line - 1) < 0) {
        // Nobody reads it.
    }
    wait_for(Stage::ended, longest_goodbye);
    begin_again();
    disarm("the program changes variables that the driver reads after an early start");
}

void early_wait_end() {
    if (early_started() && !wait_for(Stage::ended, patience())) disarm(overdue);
}

bool early_holds(CUdevice device) {
    return device >= 0 && device < most_devices && held[device].load(std::memory_order_acquire);
}

void early_let_go(CUdevice device) {
    if (device >= 0 && device < most_devices && held[device].exchange(false) && real.cuDevicePrimaryCtxRelease_v2)
        real.cuDevicePrimaryCtxRelease_v2(device);
}

void early_leave() {
    leaving.store(true);
    wait_for(Stage::ended, longest_goodbye);
}

bool early_leaves() {
    return leaving.load();
}

bool early_started() {
    return now() != static_cast<int>(Stage::none);
}

} // namespace foundry
