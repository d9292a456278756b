#include "allocators.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

constexpr unsigned most_looks = 64;
constexpr size_t most_times = size_t{1} << 20, most_lists = 4096;
constexpr unsigned exiting = 4; // PF_EXITING: has left the program's code for good
constexpr int flags_field = 9, start_field = 22;

struct Allocator {
    uint16_t thread;
    long number; // the system's
    unsigned looks;
};

// The threads that there were when so many allocations had been told.
struct Present {
    std::vector<long> numbers;
    uint64_t told;
};

struct State {
    std::vector<Allocator> alive;
    std::vector<bool> come;      // by thread ordinal
    std::vector<uint64_t> times; // when each of the first allocations had been told
    std::vector<Present> present;
    int last = -1;
};

class KeptErrno {
  public:
    ~KeptErrno() { errno = value_; }

  private:
    int value_ = errno;
};

std::mutex mutex; // not held across a driver call
State *state;

uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

// A field of the thread's stat file. False: there is no such thread.
bool field_of(long number, int wanted, uint64_t *value) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", number);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return false;
    text[length] = 0;
    // The second field is a name in brackets that may hold blanks and brackets.
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < wanted; ++field)
        if ((at = strchr(at, ' '))) ++at;
    if (!at) return false;
    *value = strtoull(at, nullptr, 10);
    return true;
}

bool ended(long number, bool told) {
    uint64_t flags;
    if (told && field_of(number, flags_field, &flags) && (flags & exiting)) return true;
    return syscall(SYS_tgkill, getpid(), number, 0) != 0 && errno == ESRCH;
}

// Empty if the system does not tell, or tells numbers that are not this process's own (those of another namespace).
std::vector<long> threads_here() {
    std::vector<long> numbers;
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return numbers;
    while (const dirent *entry = readdir(folder))
        if (long number = atol(entry->d_name)) numbers.push_back(number);
    closedir(folder);
    std::sort(numbers.begin(), numbers.end());
    if (!std::binary_search(numbers.begin(), numbers.end(), syscall(SYS_gettid))) numbers.clear();
    return numbers;
}

// How many allocations had been told before this thread was born, at least. Its start is told in clock ticks, rounded
// down; and it was not there yet when a list was made without it.
uint64_t told_before_birth(const State &known, long number) {
    uint64_t told = 0, ticks;
    for (const Present &list : known.present)
        if (!std::binary_search(list.numbers.begin(), list.numbers.end(), number)) told = list.told;
    const long each = sysconf(_SC_CLK_TCK);
    if (known.present.empty() || each <= 0 || !field_of(number, start_field, &ticks)) return told;
    const uint64_t start = ticks * (1000000000u / static_cast<uint64_t>(each));
    const auto before = std::lower_bound(known.times.begin(), known.times.end(), start) - known.times.begin();
    return std::max(told, static_cast<uint64_t>(before));
}

void tell(uint16_t thread, bool end, uint64_t before) {
    Frame(FOUNDRY_EVENT_ALLOCATOR).u16(thread).u8(end).u64(before).write();
}

} // namespace

void allocator_begins() {
    const KeptErrno kept;
    const uint16_t thread = thread_ordinal();
    std::lock_guard<std::mutex> lock(mutex);
    if (!state) state = new State;
    if (state->last == thread) return;
    state->last = thread;
    std::erase_if(state->alive, [&](Allocator &other) {
        if (other.thread == thread || other.looks >= most_looks) return false;
        ++other.looks;
        if (!ended(other.number, !state->present.empty())) return false;
        tell(other.thread, true, 0);
        return true;
    });
    if (state->come.size() <= thread) state->come.resize(thread + size_t{1});
    if (state->come[thread]) return;
    state->come[thread] = true;
    const long number = syscall(SYS_gettid);
    state->alive.push_back({thread, number, 0});
    tell(thread, false, told_before_birth(*state, number));
}

void allocator_ended() {
    const KeptErrno kept;
    std::lock_guard<std::mutex> lock(mutex);
    if (!state || state->times.size() >= most_times) return;
    state->times.push_back(now());
    if (state->times.size() > most_lists) return;
    std::vector<long> numbers = threads_here();
    if (numbers.empty()) return;
    if (state->present.empty() || state->present.back().numbers != numbers)
        state->present.push_back({std::move(numbers), state->times.size()});
    else
        state->present.back().told = state->times.size();
}

void allocators_forget() {
    new (&mutex) std::mutex;
    state = nullptr;
}

} // namespace foundry
