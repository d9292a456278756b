#include "ranges.h"

#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "process.h"
#include "spool.h"

namespace foundry {
namespace {

struct Entry {
    size_t size;
    uint64_t owner;
    std::string name;
    bool operator==(const Entry &) const = default;
};
using Key = std::pair<int, uint64_t>;

std::mutex mutex;
std::map<Key, Entry> *entries; // made on first use

std::map<Key, Entry> &all() {
    if (!entries) entries = new std::map<Key, Entry>;
    return *entries;
}

void write_gone(const Key &key) {
    Frame(FOUNDRY_EVENT_RANGE_GONE).u8(static_cast<uint8_t>(key.first)).u64(key.second).write();
}

template <typename Condition> void remove_if(Condition condition) {
    std::vector<Key> gone;
    {
        std::lock_guard<std::mutex> lock(mutex);
        for (auto entry = all().begin(); entry != all().end();)
            if (condition(entry->first, entry->second)) {
                gone.push_back(entry->first);
                entry = all().erase(entry);
            } else {
                ++entry;
            }
    }
    for (const Key &key : gone) write_gone(key);
}

} // namespace

void range_add(int kind, uint64_t address, size_t size, uint64_t owner, const char *name) {
    Entry entry{size, owner, name};
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto [found, added] = all().try_emplace({kind, address}, entry);
        if (!added && found->second == entry) return;
        found->second = entry;
    }
    Frame(FOUNDRY_EVENT_RANGE).u8(static_cast<uint8_t>(kind)).u64(address).u64(size).u64(owner).str(name).write();
}

bool range_remove(int kind, uint64_t address) {
    Key key{kind, address};
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!all().erase(key)) return false;
    }
    write_gone(key);
    return true;
}

void range_remove_within(int kind, uint64_t address, size_t size) {
    remove_if([=](const Key &key, const Entry &) {
        return key.first == kind && key.second >= address && key.second - address < size;
    });
}

void range_remove_owner(uint64_t owner) {
    remove_if([=](const Key &, const Entry &entry) { return entry.owner && entry.owner == owner; });
}

bool range_known(int kind, uint64_t address) {
    std::lock_guard<std::mutex> lock(mutex);
    return all().count({kind, address}) != 0;
}

void ranges_forget() {
    new (&mutex) std::mutex;
    entries = nullptr;
}

} // namespace foundry
