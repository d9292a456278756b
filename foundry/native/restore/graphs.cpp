// Graphs: built by the background thread in their turn, or at once by the thread that asks first.
#include <algorithm>

#include "../hook/counters.h"
#include "../hook/moments.h"
#include "../hook/spool.h"
#include "respool.h"
#include "session.h"
#include "template.h"

namespace foundry::restore {
namespace {

std::string context_missing(const foundry_image_graph &graph) {
    if (graph.context == FOUNDRY_NONE) return "device " + std::to_string(graph.device) + " has no primary context yet";
    return "context " + std::to_string(graph.context) + " of device " + std::to_string(graph.device) +
           " has not been created";
}

// While it lives, the background stands still.
struct Ahead {
    explicit Ahead(Session *of) : session(of) {}
    ~Ahead() {
        if (!session) return;
        std::lock_guard<std::mutex> lock(session->mutex);
        session->ahead--;
        session->changed.notify_all();
    }
    Ahead(const Ahead &) = delete;
    Ahead &operator=(const Ahead &) = delete;
    Session *session; // null: it is built in its turn
};

} // namespace

Reason Session::wait(uint32_t index) {
    Stopwatch watch(times.blocked);
    count_named("graph_waits", 1);
    const auto &entry = image->graphs()[index];
    GraphState &state = graphs[index];
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!entry.restorable) return image->string(entry.reason);
        if (state.work == Work::failed) return state.reason;
    }
    Borrowed borrowed_context(*this, entry.device, entry.context);
    if (!borrowed_context.context()) return context_missing(entry);
    Reason missing = check_references(index);
    if (!missing.empty()) return missing;
    Claim claimed;
    bool before_its_turn = false;
    {
        std::unique_lock<std::mutex> lock(mutex);
        claimed = claim(lock, state.work);
        if (claimed == Claim::ended) return state.reason;
        if (claimed == Claim::mine) {
            state.context = borrowed_context.context();
            before_its_turn = is_ahead(index);
        }
        if (before_its_turn) ahead++;
    }
    if (claimed == Claim::overdue) return overdue();
    if (before_its_turn) count_named("graphs_ahead", 1);
    Ahead passing(before_its_turn ? this : nullptr);
    return build(index);
}

bool Session::build_if_possible(uint32_t index) {
    const auto &entry = image->graphs()[index];
    GraphState &state = graphs[index];
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (state.work != Work::idle) return true;
    }
    Borrowed borrowed_context(*this, entry.device, entry.context);
    if (!borrowed_context.context()) return true;
    // Addresses of a device whose range may still come to lie elsewhere must not be built in.
    if ((groups[entry.group].touches_memory || devices.size() > 1) && !check_references(index).empty()) return false;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (state.work != Work::idle) return true;
        state.work = Work::busy;
        state.context = borrowed_context.context();
    }
    build(index);
    return true;
}

Reason Session::build(uint32_t index) {
    const auto &entry = image->graphs()[index];
    GroupState &group = groups[entry.group];
    GraphState &state = graphs[index];
    const uint64_t begin = nanoseconds_now();
    CUgraphExec exec = nullptr;
    Reason reason;
    {
        Entered entered(state.context);
        reason = driver_result("cuCtxPushCurrent", entered.result());
        if (reason.empty()) reason = ensure_memory(entry.device, state.context);
        for (size_t at = 0; at < group.kernels.size() && reason.empty(); at++)
            reason = ensure_kernel(group.kernels[at]);
        if (reason.empty()) reason = make_exec(index, exec);
    }
    // Told before the graph can be had: the program may commit at once.
    if (reason.empty()) {
        count_named("graphs_built", 1);
        moment_last(Moment::last_built);
    }
    std::vector<Template> finished;
    {
        std::lock_guard<std::mutex> lock(mutex);
        state.exec = exec;
        state.reason = reason;
        state.build_nanoseconds = nanoseconds_now() - begin;
        state.work = reason.empty() ? Work::ready : Work::failed;
        if (program_context_seen) times.ready = background_so_far() - times.early;
        ShapeState &shape = shapes[group.shape];
        if (!--shape.unbuilt) finished.swap(shape.pool);
        changed.notify_all();
    }
    for (Template &held : finished) template_destroy(held);
    return reason;
}

Reason Session::make_exec(uint32_t index, CUgraphExec &exec) {
    Stopwatch watch(times.graphs);
    const auto &entry = image->graphs()[index];
    GroupState &group = groups[entry.group];
    const CUcontext context = graphs[index].context;
    ShapeState &shape = shapes[group.shape];
    Template held;
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto fits = [&](const Template &free) { return free.context == context; };
        auto own = [&](const Template &free) { return fits(free) && free.group == entry.group; };
        auto fitting = std::find_if(shape.pool.begin(), shape.pool.end(), own);
        if (fitting == shape.pool.end()) fitting = std::find_if(shape.pool.begin(), shape.pool.end(), fits);
        if (fitting != shape.pool.end()) {
            held = std::move(*fitting);
            shape.pool.erase(fitting);
        }
    }
    Reason reason;
    {
        Stopwatch building(times.build);
        if (held.graph) {
            const bool of_another = held.group != entry.group;
            reason = template_rewrite(*this, entry.group, entry.first_record, held);
            // What the driver does not let become another group is built for itself.
            if (!reason.empty() && of_another) template_destroy(held);
        }
        if (!held.graph) reason = template_build(*this, entry.group, entry.first_record, context, held);
    }
    // The flag for an upload at instantiation is only for the call that also takes a stream.
    const unsigned long long flags =
        entry.instantiate_flags & ~static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
    if (reason.empty()) {
        Stopwatch instantiating(times.instantiate);
        reason = driver_result("cuGraphInstantiateWithFlags",
                               drive(real.cuGraphInstantiateWithFlags, &exec, held.graph, flags));
    }
    if (respool && reason.empty()) respool->graph_built(index, held.graph, exec);
    if (reason.empty() && !group.children) {
        std::lock_guard<std::mutex> lock(mutex);
        shape.pool.push_back(std::move(held));
        return {};
    }
    template_destroy(held);
    return reason;
}

CUevent Session::event(uint32_t index, Reason &reason) {
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (events[index]) return events[index];
    }
    CUevent made = nullptr;
    if (CUresult result = drive(real.cuEventCreate, &made, static_cast<unsigned>(image->events()[index]))) {
        reason = driver_error("cuEventCreate", result);
        return nullptr;
    }
    if (respool) respool->event_made(made, image->events()[index]);
    CUevent kept;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!events[index]) events[index] = made;
        kept = events[index];
    }
    if (kept != made) drive(real.cuEventDestroy_v2, made);
    return kept;
}

// Written by the thread that asked, once for each answer of a graph.
void Session::tell(uint32_t index, const Reason &reason) {
    GraphState &state = graphs[index];
    const bool good = reason.empty();
    uint64_t nanoseconds;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (state.handed || (state.told && !good)) return;
        state.handed = good;
        state.told = true;
        if (!good) state.given_up = reason;
        nanoseconds = state.build_nanoseconds;
    }
    if (good) moment_first(Moment::first_handed);
    if (respool && good) respool->graph_given(index);
    count_named(good ? "graphs_restored" : "graphs_given_up", 1);
    const auto &entry = image->graphs()[index];
    Frame(FOUNDRY_EVENT_GRAPH_RESTORED)
        .str(image->string(entry.set))
        .str(image->string(entry.key))
        .u8(good)
        .str(reason.c_str())
        .u64(nanoseconds)
        .write();
}

// The exec stays: the program may still hold it.
void Session::give_up(uint32_t index, const Reason &reason) {
    bool handed;
    {
        std::lock_guard<std::mutex> lock(mutex);
        handed = graphs[index].handed;
        graphs[index].handed = graphs[index].told = false;
    }
    if (handed) count_named("graphs_restored", ~uint64_t{0}); // one less
    if (handed && respool) respool->graph_taken_back(index, reason);
    tell(index, reason);
}

// Nothing of the engine's is at work in the context when this returns, and nothing will be; unless a driver call in it
// does not come back.
void Session::context_gone(CUcontext context) {
    bool late;
    std::vector<Template> finished;
    {
        std::unique_lock<std::mutex> lock(mutex);
        for (DeviceState &state : devices) {
            if (state.primary == context) state.primary = nullptr;
            std::replace(state.created.begin(), state.created.end(), context, CUcontext{nullptr});
        }
        late = !wait_for(lock, [&] { return !borrowed; });
        for (GraphState &state : graphs) {
            if (state.context != context || state.work != Work::ready) continue;
            state.work = Work::failed;
            state.exec = nullptr;
            state.reason = "its context was destroyed";
        }
        for (uint32_t at = 0; at < images.size(); at++) {
            ImageState &state = images[at];
            if (state.context != context || !state.module || state.work != Work::ready) continue;
            image_handles.erase(state.module);
            state.work = Work::failed;
            state.module = nullptr;
            state.reason = "its context was destroyed";
            for (uint32_t kernel = 0; kernel < kernels.size(); kernel++) {
                if (image->kernels()[kernel].image != at) continue;
                kernels[kernel].work = Work::failed;
                kernels[kernel].reason = state.reason;
            }
        }
        for (ShapeState &shape : shapes) {
            auto gone = std::stable_partition(shape.pool.begin(), shape.pool.end(),
                                              [&](const Template &held) { return held.context != context; });
            std::move(gone, shape.pool.end(), std::back_inserter(finished));
            shape.pool.erase(gone, shape.pool.end());
        }
    }
    for (Template &held : finished) template_destroy(held);
    if (late) overdue();
}

} // namespace foundry::restore
