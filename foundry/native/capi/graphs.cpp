// Restored graphs, as a program takes them. A foundry_graph is an entry of the session's table.
#include <string.h>

#include "../hook/counters.h"
#include "../hook/exec_table.h"
#include "../hook/moments.h"
#include "../hook/spool.h"
#include "../hook/state.h"
#include "../restore/partners.h"
#include "../restore/session.h"
#include "foundry_capi.h"
#include "reason.h"

using foundry::armed;
using foundry::restore::GraphState;
using foundry::restore::Session;
using foundry::restore::Work;
namespace capi = foundry::capi;

namespace {

constexpr const char *no_graph = "not a graph of foundry_graph_find";

// The index of a graph that foundry_graph_find gave out; false for any other pointer.
bool index_of(Session *session, const foundry_graph *graph, uint32_t &index) {
    if (!session || session->graphs.empty()) return false;
    const auto first = reinterpret_cast<uintptr_t>(session->graphs.data()),
               address = reinterpret_cast<uintptr_t>(graph);
    if (address < first || (address - first) % sizeof(GraphState) ||
        (address - first) / sizeof(GraphState) >= session->graphs.size())
        return false;
    index = static_cast<uint32_t>((address - first) / sizeof(GraphState));
    return true;
}

// Why a graph can't be had; "" if it can, as far as is known now.
std::string why_not(Session *session, uint32_t index) {
    const auto &graph = session->image->graphs()[index];
    if (!graph.restorable) return session->image->string(graph.reason);
    std::lock_guard<std::mutex> lock(session->mutex);
    const GraphState &state = session->graphs[index];
    return state.work == Work::failed ? state.reason : std::string();
}

std::string not_restoring() {
    if (*foundry::disarm_reason()) return foundry::disarm_reason();
    return armed() ? "nothing is being restored in this process" : "the hook is not armed";
}

} // namespace

FOUNDRY_EXPORT foundry_graph *foundry_graph_find(const char *set, const char *key) {
    if (!set || !key) return capi::answer_misuse("set or key is NULL"), nullptr;
    Session *session = armed() ? Session::get() : nullptr;
    if (!session) return capi::answer_unavailable(not_restoring()), nullptr;
    foundry::moment_first(foundry::Moment::first_asked);
    auto known = session->graph_names.find({set, key});
    if (known == session->graph_names.end())
        return capi::answer_unavailable(std::string("the archive has no graph `") + key + "` of `" + set + "`"),
               nullptr;
    const std::string reason = why_not(session, known->second);
    if (reason.empty()) return capi::answer_ok(), reinterpret_cast<foundry_graph *>(&session->graphs[known->second]);
    session->tell(known->second, reason);
    return capi::answer_unavailable(reason), nullptr;
}

FOUNDRY_EXPORT foundry_graph *foundry_graph_next(const char *set, const foundry_graph *previous) {
    if (!set) return capi::answer_misuse("set is NULL"), nullptr;
    Session *session = armed() ? Session::get() : nullptr;
    if (!session) return capi::answer_unavailable(not_restoring()), nullptr;
    uint32_t index = 0;
    if (previous) {
        if (!index_of(session, previous, index)) return capi::answer_misuse(no_graph), nullptr;
        index++;
    }
    capi::answer_ok();
    for (; index < session->graphs.size(); index++) {
        const auto &graph = session->image->graphs()[index];
        if (!strcmp(session->image->string(graph.set), set) && why_not(session, index).empty())
            return reinterpret_cast<foundry_graph *>(&session->graphs[index]);
    }
    return nullptr;
}

FOUNDRY_EXPORT const char *foundry_graph_key(const foundry_graph *graph) {
    uint32_t index;
    Session *session = Session::any();
    if (!index_of(session, graph, index)) return capi::answer_misuse(no_graph), nullptr;
    capi::answer_ok();
    return session->image->string(session->image->graphs()[index].key);
}

FOUNDRY_EXPORT const char *foundry_graph_metadata(const foundry_graph *graph) {
    uint32_t index;
    Session *session = Session::any();
    if (!index_of(session, graph, index)) return capi::answer_misuse(no_graph), nullptr;
    capi::answer_ok();
    const char *metadata = session->metadata(index);
    return *metadata ? metadata : nullptr;
}

FOUNDRY_EXPORT int foundry_graph_wait(foundry_graph *graph) {
    uint32_t index;
    Session *session = Session::any();
    if (!index_of(session, graph, index)) return capi::answer_misuse(no_graph);
    if (!armed()) return capi::answer_unavailable(not_restoring());
    foundry::Inside inside;
    foundry::restore::Reason reason = foundry::restore::wait_with_partners(*session, index);
    session->tell(index, reason);
    return reason.empty() ? capi::answer_ok() : capi::answer_unavailable(reason);
}

FOUNDRY_EXPORT void *foundry_graph_exec(foundry_graph *graph) {
    uint32_t index;
    Session *session = Session::any();
    if (!index_of(session, graph, index)) return capi::answer_misuse(no_graph), nullptr;
    std::lock_guard<std::mutex> lock(session->mutex);
    const GraphState &state = session->graphs[index];
    if (!state.handed || !state.exec)
        return capi::answer_misuse("foundry_graph_wait has not answered 0 for this graph"), nullptr;
    return capi::answer_ok(), state.exec;
}

FOUNDRY_EXPORT int foundry_graph_launch(foundry_graph *graph, void *stream) {
    void *exec = foundry_graph_exec(graph);
    if (!exec) return FOUNDRY_MISUSE;
    foundry::count(foundry::counters.graph_launches);
    const CUresult result = foundry::restore::drive(foundry::real.cuGraphLaunch, static_cast<CUgraphExec>(exec),
                                                    static_cast<CUstream>(stream));
    // False for all graphs but those that the engine spools (FOUNDRY_RESPOOL).
    if (!result && !foundry::scratch_depth() && foundry::exec_first_launch(static_cast<CUgraphExec>(exec)))
        foundry::Frame(FOUNDRY_EVENT_EXEC_LAUNCHED).handle(exec).write();
    return result;
}

FOUNDRY_EXPORT void foundry_graph_give_up(foundry_graph *graph, const char *reason) {
    uint32_t index;
    Session *session = Session::any();
    if (!index_of(session, graph, index)) {
        capi::answer_misuse(no_graph);
        return;
    }
    session->give_up(index, reason && *reason ? reason : "given up by the program");
    capi::answer_ok();
}
