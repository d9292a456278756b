// The inside of the restore engine: one session a process, made when the image was accepted, never destroyed.
//
// Work on a thing (an image, a kernel, a device's memory, a graph) is claimed: whoever finds it idle does it, everybody
// else waits. The claims form no circle: graph -> device memory, graph -> kernel -> image. The session's mutex guards
// states only and is never held across a driver call, nor across a call of the hook that takes a lock of its own.
#ifndef FOUNDRY_RESTORE_SESSION_H
#define FOUNDRY_RESTORE_SESSION_H

#include <stdint.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../hook/arena.h"
#include "../hook/patience.h"
#include "image.h"

namespace foundry::restore {

// Of work and why it failed; an empty reason is success.
using Reason = std::string;

enum class Work : uint8_t { idle, busy, ready, failed };

// What became of a claim: the caller has it and must end it; somebody ended it; nobody did in time.
enum class Claim : uint8_t { mine, ended, overdue };

struct ImageState {
    Work work = Work::idle;
    bool program_loads = false; // busy: the program's own load is under way, and the engine will use its handle
    static constexpr std::chrono::steady_clock::time_point never = std::chrono::steady_clock::time_point::max();
    std::chrono::steady_clock::time_point until = never; // how long the engine waits for it
    uint32_t references = 0;                             // the program's
    uint32_t users = 0;                                  // engine threads that look up kernels in it
    bool in_graphs = false;                              // never unloaded then
    uint32_t context_ordinal = FOUNDRY_NONE;
    CUlibrary library = nullptr;
    CUmodule module = nullptr;
    CUcontext context = nullptr; // modules
    Reason reason;
};

struct KernelState {
    Work work = Work::idle;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    Reason reason;
};

// A CUgraph of a group whose nodes hold the values of one member.
struct Template {
    CUcontext context = nullptr;
    CUgraph graph = nullptr;
    std::vector<CUgraphNode> nodes;
    uint32_t group = 0;  // whose kernels and launch attributes the nodes have
    uint64_t record = 0; // first record of the values that the nodes hold
    std::vector<std::pair<uint32_t, uint32_t>>
        attributes; // (node, entry of NODE_ATTRIBUTES) that differ from a fresh node
};

// Groups with the same node types and edges: their kernels differ, so a template of one becomes the other's by
// rewriting.
struct ShapeState {
    std::vector<Template> pool;
    uint32_t unbuilt = 0; // members that may still need a template
};

struct GroupState {
    uint32_t shape = 0;
    bool children = false;
    bool touches_memory = false; // the driver checks addresses when a memset or memcpy node is added
    std::vector<uint32_t> kernels;
};

struct GraphState {
    Work work = Work::idle;
    CUgraphExec exec = nullptr;
    CUcontext context = nullptr;
    Reason reason;
    uint64_t build_nanoseconds = 0;
    uint32_t missing = 0; // the reference that was not there when last looked for
    Reason given_up;
    bool handed = false, told = false; // to the program; in the spool
};

struct DeviceState {
    uint32_t ordinal = 0;
    CUdevice handle = 0;
    CUcontext primary = nullptr;
    std::vector<CUcontext> created;
    Work range = Work::idle; // ready: stands where the image has it, and what the archive needs is claimed
    uint64_t distance = 0;   // from where it was captured, modulo 2^64
    Work memory = Work::idle;
    Reason memory_reason;
    std::vector<uint32_t> log; // entries of the LOG section for this device, in order
    size_t log_position = 0;
    Reason log_difference;
    Reason log_strayed; // an allocation in another arena, of the size that the main arena's next was to have
};

struct Times {
    // Summed over threads; build, verify and instantiate are parts of graphs.
    std::atomic<uint64_t> image_check{0}, map{0}, images{0}, kernels{0}, graphs{0}, build{0}, verify{0}, instantiate{0};
    std::atomic<uint64_t> image_wait{0}; // until the restore image was there
    std::atomic<uint64_t> background{0}; // wall time with a worker at work
    std::atomic<uint64_t> early{0};      // of that, before the program's first context: libraries need none
    std::atomic<uint64_t> ready{0};      // background from there until the last graph was built
    std::atomic<uint64_t> blocked{0};    // of the program's threads
};

class Respool;

class Session {
  public:
    // The session of this process, or null: not in restore mode, no image, disarmed, forked. The first call opens it.
    static Session *get();
    // The same without opening.
    static Session *current();
    // Even when disarmed since: what was given to the program stays shared.
    static Session *any();
    static void forget();

    explicit Session(ImagePointer image);

    // gate.cpp
    Reason gate(); // every difference that forbids the image here; once, before anything else

    // session.cpp
    bool reserve(DeviceState &device); // false: the range stands elsewhere, and the hook is disarmed
    DeviceState *device(uint32_t ordinal);
    // With the lock held; null if there is none, or no range for it. FOUNDRY_NONE = the primary one.
    CUcontext context_of(uint32_t device, uint32_t created_ordinal);
    CUcontext any_context(uint32_t device);
    // The image to take a kernel from: with no more than graphs use, unless whole images are asked for.
    uint32_t image_of(uint32_t kernel) const;

    // With the lock held, for things that stay in place.
    Claim claim(std::unique_lock<std::mutex> &lock, Work &work);
    // Until the condition holds; false: not within the program's patience, or another wait was in vain.
    template <typename Condition> bool wait_for(std::unique_lock<std::mutex> &lock, Condition condition);
    // Without the lock: a wait was in vain. Disarms: where one call does not come back, others would not either.
    Reason overdue();
    // move.cpp
    bool may_move() const;
    void move(uint32_t device, CUdeviceptr base, size_t arena_size);
    const char *metadata(uint32_t graph); // with addresses as they are here; lives until the process ends

    // memory.cpp
    void claim_ranges(DeviceState &device);
    Reason ensure_memory(uint32_t device, CUcontext context);
    Reason check_references(uint32_t graph);
    bool range_ready(uint32_t device);
    bool log_matched(uint32_t device, uint32_t entries); // so many came as they were captured
    void compare_log(const Block &block, bool freed);
    Reason log_answer(const DeviceState &device) const; // with the lock held; how the log stands, if not as captured

    // images.cpp
    Reason ensure_image(uint32_t index);
    Reason ensure_kernel(uint32_t index);

    // handover.cpp
    bool handover(const uint8_t key[32], uint32_t api, CUcontext context, void **handle);
    void loaded(const uint8_t key[32], uint32_t api, CUcontext context, void *handle);
    void load_failed(const uint8_t key[32]);
    bool unload(void *handle);

    // graphs.cpp
    Reason wait(uint32_t graph);
    bool build_if_possible(uint32_t graph); // background: false = not yet
    Reason build(uint32_t graph);           // with the claim in the caller's hands
    CUevent event(uint32_t index, Reason &reason);
    void tell(uint32_t graph, const Reason &reason);
    void give_up(uint32_t graph, const Reason &reason);
    void context_gone(CUcontext context);

    // worker.cpp
    void start_workers();
    void wake_workers();
    bool stop_workers();                 // false: one is still in a driver call
    bool next_turn();                    // between two things; false: it is time to stop
    bool is_ahead(uint32_t graph) const; // with the lock held: more graphs than there are workers come before it
    uint64_t background_so_far() const;  // with the lock held

    // report.cpp
    void summary();
    void spool_timings();

    const ImagePointer image;
    Respool *respool = nullptr; // unless asked for
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<DeviceState> devices;
    std::vector<ImageState> images;
    std::vector<KernelState> kernels;
    std::vector<GroupState> groups;
    std::vector<ShapeState> shapes;
    std::vector<GraphState> graphs;
    std::vector<CUevent> events;
    std::vector<uint32_t> graph_order;               // restorable ones, by first use
    std::vector<uint32_t> image_order, kernel_order; // as graph_order needs them, then the others
    std::map<std::pair<std::string_view, std::string_view>, uint32_t> graph_names;
    std::map<std::string_view, std::vector<uint32_t>> image_keys; // by instance
    std::map<std::string_view, uint32_t> loads;                   // of a key, by the program, so far
    std::unordered_map<void *, uint32_t> image_handles;
    std::vector<std::pair<CUdeviceptr, CUdeviceptr>> unclaimed; // ranges that could not be had
    bool context_seen = false;                                  // early or the program's own
    bool program_context_seen = false;
    uint32_t borrowed = 0;              // contexts in the engine's hands
    uint32_t ahead = 0;                 // graphs that a thread of the program builds before their turn
    std::atomic<bool> stuck{false};     // a wait was in vain: nobody waits any more
    std::atomic<uint32_t> postponed{0}; // graphs that wait for an allocation of the program's
    bool moved = false;
    std::unordered_map<uint32_t, const char *> moved_metadata; // by graph; texts are never freed
    Times times;

  private:
    void index();
    void index_group(uint32_t group, GroupState &state, uint32_t depth);
    Reason load_image(uint32_t index, ImageState &loaded);
    Reason load_bytes(uint32_t index, ImageState &loaded);
    Reason load_kernel(uint32_t index, KernelState &loaded);
    Reason make_exec(uint32_t graph, CUgraphExec &exec);
    void move_metadata();
    void memory_pass();
    void image_pass(bool in_graphs);
    void kernel_pass(bool in_graphs);
    void work_through();
    static void *worker_entry(void *self);

    unsigned workers_started_ = 0, workers_running_ = 0, workers_busy_ = 0;
    uint64_t wakes_ = 0; // how often there was something new; a worker that has seen them all sleeps
    uint64_t busy_since_ = 0;
    bool stop_ = false, summary_told_ = false;
    const bool whole_images_;
};

// "cuGraphAddDependencies: CUDA_ERROR_INVALID_VALUE"
Reason driver_error(const char *function, CUresult result);

// The same for a result that may be success.
inline Reason driver_result(const char *function, CUresult result) {
    return result ? driver_error(function, result) : Reason();
}

// A driver function that this driver may lack.
template <typename Function, typename... Arguments> CUresult drive(Function function, Arguments... arguments) {
    return function ? function(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
}

uint64_t nanoseconds_now();

template <typename Condition> bool Session::wait_for(std::unique_lock<std::mutex> &lock, Condition condition) {
    changed.wait_for(lock, patience(), [&] { return condition() || stuck; });
    return condition();
}

// A context of the program's in the engine's hands: while one lives, the context's destruction waits.
class Borrowed {
  public:
    // The context of a graph or image; FOUNDRY_NONE = the primary one.
    Borrowed(Session &session, uint32_t device, uint32_t created_ordinal);
    // Any context of the device.
    Borrowed(Session &session, uint32_t device);
    ~Borrowed();
    Borrowed(const Borrowed &) = delete;
    Borrowed &operator=(const Borrowed &) = delete;
    CUcontext context() const { return context_; } // null: there is none

  private:
    Session &session_;
    CUcontext context_;
};

// Adds the time it lives to a total.
class Stopwatch {
  public:
    explicit Stopwatch(std::atomic<uint64_t> &total) : total_(total), begin_(nanoseconds_now()) {}
    ~Stopwatch() { total_ += nanoseconds_now() - begin_; }
    Stopwatch(const Stopwatch &) = delete;
    Stopwatch &operator=(const Stopwatch &) = delete;

  private:
    std::atomic<uint64_t> &total_;
    uint64_t begin_;
};

// Makes a context current, and keeps the engine's calls from disturbing stream captures of the program's, for as long
// as it lives.
class Entered {
  public:
    explicit Entered(CUcontext context);
    ~Entered();
    Entered(const Entered &) = delete;
    Entered &operator=(const Entered &) = delete;
    CUresult result() const { return result_; }

  private:
    CUresult result_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool exchanged_ = false;
};

} // namespace foundry::restore

#endif
