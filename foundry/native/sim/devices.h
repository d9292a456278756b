// Devices, contexts and what a thread has current.
#pragma once

#include "handles.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace sim {

struct Stream;
struct Pool;

struct Context {
    CUcontext handle = nullptr;
    int device = 0;
    bool primary = false;
    unsigned flags = 0;
    unsigned long long id = 0;
    unsigned version = 0; // of the API that made it
    CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
    std::map<CUlimit, std::size_t> limits;
    std::set<CUcontext> peers;
    std::shared_ptr<Stream> legacy;
    std::map<unsigned, std::shared_ptr<Stream>> per_thread; // by thread ordinal
};

struct Device {
    int ordinal = 0;
    CUuuid uuid = {};
    std::uint64_t total = 0; // nominal bytes
    std::uint64_t limit = 0; // bytes that may be taken
    std::uint64_t used = 0;
    std::shared_ptr<Context> primary; // made at the first retain, kept for the process's life
    unsigned primary_references = 0;
    unsigned primary_flags = 0;
    std::shared_ptr<Pool> default_pool, pool;
};

struct ThreadState {
    unsigned ordinal = 0;
    std::vector<CUcontext> contexts; // the stack; the last is current
    CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

struct Driver {
    bool initialised = false;
    int process = 0; // the one that initialised
    std::vector<Device> devices;
    Table<CUcontext, Context> contexts;
    unsigned long long next_context_id = 1;
};

Driver &driver();
ThreadState &thread();
Device *find_device(CUdevice device);

// The current context, or why there is none.
CUresult current_context(Context **context);

// Frees everything that lives in a context: streams, events, modules, memory.
void clear_context(Context &context);

// How a program's own memory, streams, modules end with their context; each family registers nothing, it defines one of
// these.
void clear_streams(Context &context);
void clear_modules(Context &context);
void clear_memory(Context &context);

} // namespace sim
