// The door of every exported driver function: levers, initialisation, the one lock, then the family's body.
// Everything here derives from driver_functions.def. A family defines `CUresult sim::<symbol>(...)`; the compiler
// refuses a signature that differs from the list, and what no family defines answers CUDA_ERROR_NOT_SUPPORTED.
#pragma once

#include "cuda_abi.h"

#include <mutex>
#include <new>
#include <utility>

namespace sim {

#define FN(family, symbol, since, capture, restore, parameters, arguments) CUresult symbol parameters;
#define FN_STREAM(family, symbol, suffix, since, capture, restore, parameters, arguments) CUresult symbol parameters;
#include "../table/driver_functions.def"

enum class Row : unsigned {
#define FN(family, symbol, since, capture, restore, parameters, arguments) symbol,
#include "../table/driver_functions.def"
    count
};

struct RowInfo {
    const char *symbol;
    int since;
    void *address; // of the symbol this library exports, never of one that a preloaded library put in front
};
extern const RowInfo rows[];

// Held by a call from entry to return. Bodies therefore never lock, and never see another thread's half-done work.
class Entry {
  public:
    Entry(Row row, bool per_thread);
    ~Entry();
    Entry(const Entry &) = delete;
    Entry &operator=(const Entry &) = delete;
    CUresult refusal() const { return refusal_; }
    // Whether a null stream means the calling thread's own default stream in this call.
    static bool per_thread_default();

  private:
    friend class Unlocked;
    CUresult refusal_ = CUDA_SUCCESS;
    bool locked_ = false;
    Entry *outer_ = nullptr;
    bool per_thread_ = false;
};

// The lock let go while code of the program runs (host functions, callbacks). What was looked up before may be gone
// after.
class Unlocked {
  public:
    Unlocked();
    ~Unlocked();
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

  private:
    Entry *entry_;
};

template <class Body> CUresult enter(Row row, bool per_thread, Body &&body) {
    try {
        Entry entry(row, per_thread);
        return entry.refusal() != CUDA_SUCCESS ? entry.refusal() : std::forward<Body>(body)();
    } catch (const std::bad_alloc &) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

} // namespace sim

// Leaves the calling body with the result of `call` unless that is success.
#define SIM_TRY(call)                                                                                                  \
    do {                                                                                                               \
        if (CUresult sim_result = (call); sim_result != CUDA_SUCCESS) return sim_result;                               \
    } while (false)
