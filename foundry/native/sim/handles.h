// Handle values: unlike in each run, and sometimes those of something destroyed before, as a real driver's are.
#pragma once

#include "levers.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace sim {

// A value that looks like an address of the heap, and is none.
std::uint64_t fresh_handle();

template <class Handle, class Object> class Table {
  public:
    Handle add(const std::shared_ptr<Object> &object) {
        std::uint64_t value = 0;
        if (!retired_.empty() && random_number() % 2 == 0) {
            value = retired_.back();
            retired_.pop_back();
        } else {
            value = fresh_handle();
        }
        objects_[value] = object;
        object->handle = to_handle(value);
        return object->handle;
    }
    Object *find(Handle handle) const {
        auto found = objects_.find(to_value(handle));
        return found == objects_.end() ? nullptr : found->second.get();
    }
    std::shared_ptr<Object> share(Handle handle) const {
        auto found = objects_.find(to_value(handle));
        return found == objects_.end() ? nullptr : found->second;
    }
    bool remove(Handle handle) {
        auto found = objects_.find(to_value(handle));
        if (found == objects_.end()) return false;
        std::shared_ptr<Object> kept = found->second; // its destructor may come back to this table
        if (retired_.size() < most_retired) retired_.push_back(found->first);
        objects_.erase(found);
        return true;
    }
    template <class Predicate> void remove_if(Predicate predicate) {
        std::vector<Handle> doomed;
        for (auto &[value, object] : objects_)
            if (predicate(*object)) doomed.push_back(to_handle(value));
        for (Handle handle : doomed) remove(handle);
    }
    auto begin() const { return objects_.begin(); }
    auto end() const { return objects_.end(); }

  private:
    static Handle to_handle(std::uint64_t value) {
        if constexpr (std::is_pointer_v<Handle>)
            return reinterpret_cast<Handle>(value);
        else
            return static_cast<Handle>(value);
    }
    static std::uint64_t to_value(Handle handle) {
        if constexpr (std::is_pointer_v<Handle>)
            return reinterpret_cast<std::uint64_t>(handle);
        else
            return static_cast<std::uint64_t>(handle);
    }
    std::unordered_map<std::uint64_t, std::shared_ptr<Object>> objects_;
    static constexpr std::size_t most_retired = 1024;
    std::vector<std::uint64_t> retired_; // half of all new objects take one of these
};

} // namespace sim
