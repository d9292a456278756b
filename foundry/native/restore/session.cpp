#include "session.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "../hook/settings.h"
#include "../hook/spool.h"
#include "../hook/state.h"
#include "respool.h"
#include "standing.h"

namespace foundry::restore {
namespace {

std::atomic<Session *> active{nullptr};
std::atomic<bool> tried{false};

// Without constructors and destructors, unlike their C++ forms.
pthread_mutex_t opening_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t opening_changed = PTHREAD_COND_INITIALIZER;
bool opening = false;

// The first caller opens, the others wait until it is known how that went, or for as long as they have patience.
bool claim_opening() {
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += std::chrono::ceil<std::chrono::seconds>(patience()).count();
    pthread_mutex_lock(&opening_mutex);
    while (opening && !tried.load(std::memory_order_acquire))
        if (pthread_cond_timedwait(&opening_changed, &opening_mutex, &until)) break;
    const bool mine = !opening;
    opening = true;
    pthread_mutex_unlock(&opening_mutex);
    return mine;
}

// What two groups must have in common for one's template to become the other's. Child graphs can't be rewritten.
std::string shape_of(const Image &image, uint32_t index, const GroupState &state) {
    const auto &group = image.groups()[index];
    std::string shape = state.children ? "group " + std::to_string(index) : std::string();
    auto add = [&](const auto &value) { shape.append(reinterpret_cast<const char *>(&value), sizeof value); };
    for (const auto &node : image.nodes().subspan(group.first_node, group.node_count)) add(node.type);
    for (const auto &edge : image.edges().subspan(group.first_edge, group.edge_count)) add(edge);
    return shape;
}

void end_opening(Session *session) {
    active.store(session, std::memory_order_release);
    pthread_mutex_lock(&opening_mutex);
    tried.store(true, std::memory_order_release);
    pthread_cond_broadcast(&opening_changed);
    pthread_mutex_unlock(&opening_mutex);
}

// What is told to the spool is to be what a capture tells.
bool wants_whole_images() {
    const char *asked = setting("FOUNDRY_TRIM");
    return respools() || !asked || std::strcmp(asked, "1") != 0;
}

Session *open_session() {
    const std::string path = image_path();
    Session *session = nullptr;
    if (path.empty()) {
        disarm("FOUNDRY_IMAGE does not say where the restore image is");
    } else {
        Reason reason;
        uint64_t begin = nanoseconds_now();
        auto image = arriving_image(path, reason);
        if (image) {
            session = new Session(std::move(image));
            const auto waited = static_cast<uint64_t>(session->image->waited.count());
            session->times.image_wait = waited;
            session->times.image_check = nanoseconds_now() - begin - waited;
            reason = session->gate();
        }
        if (!reason.empty()) {
            disarm(reason.c_str());
            if (session) delete session->respool;
            delete session;
            session = nullptr;
        }
    }
    return session;
}

} // namespace

Session *Session::current() {
    Session *session = active.load(std::memory_order_acquire);
    return session && armed() ? session : nullptr;
}

Session *Session::get() {
    if (tried.load(std::memory_order_acquire)) return current();
    if (mode() != FOUNDRY_MODE_RESTORE || !armed()) return nullptr;
    if (claim_opening()) end_opening(open_session());
    return current();
}

Session *Session::any() {
    return active.load(std::memory_order_acquire);
}

void Session::forget() {
    tried.store(true, std::memory_order_release);
    active.store(nullptr, std::memory_order_release);
}

Session::Session(ImagePointer accepted) : image(std::move(accepted)), whole_images_(wants_whole_images()) {
    index();
    if (respools()) respool = new Respool(*this);
}

void Session::index() {
    for (const auto &entry : image->devices()) {
        DeviceState state;
        state.ordinal = entry.ordinal;
        devices.push_back(std::move(state));
    }
    auto log = image->log();
    for (uint32_t at = 0; at < log.size(); at++) device(log[at].device)->log.push_back(at);
    images.resize(image->images().size());
    kernels.resize(image->kernels().size());
    groups.resize(image->groups().size());
    graphs.resize(image->graphs().size());
    events.resize(image->events().size());
    for (uint32_t at = 0; at < images.size(); at++) {
        const auto &entry = image->images()[at];
        if (entry.whole != FOUNDRY_NONE) continue;
        image_keys[{reinterpret_cast<const char *>(entry.key), sizeof entry.key}].push_back(at);
    }
    for (auto &[key, instances] : image_keys)
        std::stable_sort(instances.begin(), instances.end(), [&](uint32_t left, uint32_t right) {
            return image->images()[left].instance < image->images()[right].instance;
        });

    for (uint32_t at = 0; at < graphs.size(); at++) {
        const auto &graph = image->graphs()[at];
        graph_names.insert({{image->string(graph.set), image->string(graph.key)}, at});
        if (graph.restorable) graph_order.push_back(at);
    }
    std::stable_sort(graph_order.begin(), graph_order.end(), [&](uint32_t left, uint32_t right) {
        return image->graphs()[left].first_use < image->graphs()[right].first_use;
    });

    std::vector<bool> kernel_seen(kernels.size()), image_seen(images.size()), group_seen(groups.size());
    auto add_kernel = [&](uint32_t kernel) {
        if (kernel_seen[kernel]) return;
        kernel_seen[kernel] = true;
        kernel_order.push_back(kernel);
        const uint32_t of = image_of(kernel);
        if (!image_seen[of]) image_order.push_back(of);
        image_seen[of] = true;
    };
    std::map<std::string, uint32_t> shape_numbers;
    for (uint32_t graph : graph_order) {
        const auto &entry = image->graphs()[graph];
        GroupState &group = groups[entry.group];
        if (!group_seen[entry.group]) {
            index_group(entry.group, group, 0);
            group.shape = shape_numbers.insert({shape_of(*image, entry.group, group), shapes.size()}).first->second;
            if (group.shape == shapes.size()) shapes.emplace_back();
        }
        group_seen[entry.group] = true;
        shapes[group.shape].unbuilt++;
        for (uint32_t kernel : group.kernels) {
            add_kernel(kernel);
            const uint32_t of = image_of(kernel), whole = image->images()[of].whole;
            images[of].context_ordinal = entry.context;
            images[of].in_graphs = true;
            if (whole != FOUNDRY_NONE) images[whole].context_ordinal = entry.context;
        }
    }
    for (uint32_t kernel = 0; kernel < kernels.size(); kernel++) add_kernel(kernel);
    for (uint32_t at = 0; at < images.size(); at++)
        if (!image_seen[at] && image->images()[at].whole == FOUNDRY_NONE) image_order.push_back(at);
}

uint32_t Session::image_of(uint32_t kernel) const {
    const uint32_t of = image->kernels()[kernel].image, whole = image->images()[of].whole;
    return whole_images_ && whole != FOUNDRY_NONE ? whole : of;
}

void Session::index_group(uint32_t index, GroupState &state, uint32_t depth) {
    const auto &group = image->groups()[index];
    for (const auto &node : image->nodes().subspan(group.first_node, group.node_count)) {
        if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) state.kernels.push_back(node.kernel);
        if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY || node.type == CU_GRAPH_NODE_TYPE_MEMSET)
            state.touches_memory = true;
        if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) {
            state.children = true;
            index_group(node.child_group, state, depth + 1);
        }
    }
    if (depth) return;
    std::vector<bool> seen(kernels.size());
    std::erase_if(state.kernels, [&](uint32_t kernel) {
        bool again = seen[kernel];
        seen[kernel] = true;
        return again;
    });
}

DeviceState *Session::device(uint32_t ordinal) {
    for (DeviceState &state : devices)
        if (state.ordinal == ordinal) return &state;
    return nullptr;
}

CUcontext Session::any_context(uint32_t ordinal) {
    DeviceState *state = device(ordinal);
    if (!state || state->range != Work::ready) return nullptr;
    if (state->primary) return state->primary;
    for (CUcontext context : state->created)
        if (context) return context;
    return nullptr;
}

CUcontext Session::context_of(uint32_t ordinal, uint32_t created_ordinal) {
    DeviceState *state = device(ordinal);
    if (!state || state->range != Work::ready) return nullptr;
    if (created_ordinal == FOUNDRY_NONE) return state->primary;
    return created_ordinal < state->created.size() ? state->created[created_ordinal] : nullptr;
}

// Before the first allocation of the program: a range at another place makes every recorded address wrong.
bool Session::reserve(DeviceState &state) {
    Claim claimed;
    {
        std::unique_lock<std::mutex> lock(mutex);
        claimed = claim(lock, state.range);
        if (claimed == Claim::ended) return state.range == Work::ready;
    }
    if (claimed == Claim::overdue) return overdue(), false;
    const auto &expected = *image->device(state.ordinal);
    bool good = false;
    size_t size = 0;
    CUdeviceptr base = arena_base(state.ordinal, &size);
    if (expected.base && (base != expected.base || size != expected.arena_size)) {
        char text[300];
        if (!base)
            snprintf(text, sizeof text, "range taken: device %u wants 0x%llx, got none%s", state.ordinal,
                     static_cast<unsigned long long>(expected.base),
                     may_move() ? " there or elsewhere"
                                : "; the archive does not prove that its graphs may lie elsewhere (`foundry capture "
                                  "--prove` does)");
        else if (base != expected.base)
            snprintf(text, sizeof text, "range taken: device %u wants 0x%llx, got 0x%llx", state.ordinal,
                     static_cast<unsigned long long>(expected.base), static_cast<unsigned long long>(base));
        else
            snprintf(text, sizeof text, "device %u: arenas captured with %llu bytes each, this one has %zu",
                     state.ordinal, static_cast<unsigned long long>(expected.arena_size), size);
        std::string reason = text;
        if (base != expected.base) {
            const std::string who =
                who_stands_in(expected.base, expected.base + FOUNDRY_ARENA_COUNT * expected.arena_size);
            if (!who.empty()) reason += "; " + who + " stands there";
        }
        disarm(reason.c_str());
    } else {
        claim_ranges(state);
        good = true;
    }
    std::lock_guard<std::mutex> lock(mutex);
    state.range = good ? Work::ready : Work::failed;
    changed.notify_all();
    return good;
}

Borrowed::Borrowed(Session &session, uint32_t device, uint32_t created_ordinal) : session_(session) {
    std::lock_guard<std::mutex> lock(session.mutex);
    context_ = session.context_of(device, created_ordinal);
    session.borrowed++;
}

Borrowed::Borrowed(Session &session, uint32_t device) : session_(session) {
    std::lock_guard<std::mutex> lock(session.mutex);
    context_ = session.any_context(device);
    session.borrowed++;
}

Borrowed::~Borrowed() {
    std::lock_guard<std::mutex> lock(session_.mutex);
    if (!--session_.borrowed) session_.changed.notify_all();
}

Claim Session::claim(std::unique_lock<std::mutex> &lock, Work &work) {
    if (!wait_for(lock, [&] { return work != Work::busy; })) return Claim::overdue;
    if (work != Work::idle) return Claim::ended;
    work = Work::busy;
    return Claim::mine;
}

Reason Session::overdue() {
    const char *reason = "a driver call of the restore does not come back";
    disarm(reason);
    stuck = true;
    changed.notify_all();
    return reason;
}

Reason driver_error(const char *function, CUresult result) {
    const char *name = nullptr;
    if (drive(real.cuGetErrorName, result, &name) || !name) name = "an unknown error";
    return std::string(function) + ": " + name;
}

uint64_t nanoseconds_now() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

Entered::Entered(CUcontext context) : result_(drive(real.cuCtxPushCurrent_v2, context)) {
    exchanged_ = drive(real.cuThreadExchangeStreamCaptureMode, &mode_) == CUDA_SUCCESS;
}

Entered::~Entered() {
    if (exchanged_) drive(real.cuThreadExchangeStreamCaptureMode, &mode_);
    CUcontext context;
    if (!result_) drive(real.cuCtxPopCurrent_v2, &context);
}

} // namespace foundry::restore
