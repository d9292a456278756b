#include "counters.h"

#include <string.h>

#include <mutex>
#include <new>

namespace foundry {

Counters counters;

namespace {

constexpr unsigned most_named = 256;

struct Named {
    char name[64] = {};
    std::atomic<uint64_t> value{0};
};

std::mutex named_mutex; // for making one only
constinit Named named[most_named];
std::atomic<unsigned> named_count{0};

std::atomic<uint64_t> *find_named(const char *name) {
    unsigned count = named_count.load(std::memory_order_acquire);
    for (unsigned index = 0; index < count; ++index)
        if (strncmp(named[index].name, name, sizeof named[index].name - 1) == 0) return &named[index].value;
    return nullptr;
}

} // namespace

void count_named(const char *name, uint64_t add) {
    if (!name || !*name) return;
    std::atomic<uint64_t> *value = find_named(name);
    if (!value) {
        std::lock_guard<std::mutex> lock(named_mutex);
        value = find_named(name);
        unsigned count = named_count.load(std::memory_order_relaxed);
        if (!value && count < most_named) {
            strncpy(named[count].name, name, sizeof named[count].name - 1);
            value = &named[count].value;
            named_count.store(count + 1, std::memory_order_release);
        }
    }
    if (value) value->fetch_add(add, std::memory_order_relaxed);
}

uint64_t counter_value(const char *name) {
    if (!name) return 0;
#define X(counter)                                                                                                     \
    if (strcmp(name, #counter) == 0) return counters.counter.load(std::memory_order_relaxed);
    FOUNDRY_COUNTERS(X)
#undef X
    std::atomic<uint64_t> *value = find_named(name);
    return value ? value->load(std::memory_order_relaxed) : 0;
}

void counters_forget() {
#define X(counter) counters.counter.store(0, std::memory_order_relaxed);
    FOUNDRY_COUNTERS(X)
#undef X
    new (&named_mutex) std::mutex;
    for (Named &entry : named) {
        entry.name[0] = 0;
        entry.value.store(0, std::memory_order_relaxed);
    }
    named_count.store(0, std::memory_order_release);
}

void counters_each(void (*visit)(const char *name, uint64_t value, void *user), void *user) {
#define X(counter) visit(#counter, counters.counter.load(std::memory_order_relaxed), user);
    FOUNDRY_COUNTERS(X)
#undef X
    unsigned count = named_count.load(std::memory_order_acquire);
    for (unsigned index = 0; index < count; ++index)
        visit(named[index].name, named[index].value.load(std::memory_order_relaxed), user);
}

} // namespace foundry
