// What FOUNDRY_SIM_REPORT writes when the process ends: how often each function was called, and what is still alive.
#include "exec.h"
#include "physical.h"
#include "pools.h"
#include "regions.h"
#include "streams.h"

#include <cstdio>
#include <unistd.h>

namespace sim {
namespace {

constexpr const char *region_names[] = {"memory", "pool-memory", "graph-memory", "mapping",    "managed",
                                        "pinned", "registered",  "global",       "peer-memory"};

template <class Objects, class Predicate> long count(const Objects &objects, Predicate counts) {
    long number = 0;
    for (const auto &[value, object] : objects) number += counts(*object) ? 1 : 0;
    return number;
}

template <class Objects> long count(const Objects &objects) {
    return count(objects, [](const auto &) { return true; });
}

void write_alive(FILE *file) {
    Driver &state = driver();
    const GraphRegistry &graphs = graph_registry();
    const KernelRegistry &kernels = kernel_registry();
    std::map<std::string, long> alive;
    for (const Device &device : state.devices) alive["primary-context"] += device.primary_references;
    alive["context"] = count(state.contexts, [](const Context &context) { return !context.primary; });
    alive["stream"] = count(stream_registry().streams);
    alive["event"] = count(stream_registry().events);
    alive["graph"] = count(graphs.graphs, [](const Graph &graph) { return !graph.owned; });
    alive["user-object"] = count(graphs.user_objects);
    alive["exec"] = count(execs());
    alive["library"] = count(kernels.libraries);
    alive["module"] = count(kernels.modules, [](const Module &module) { return !module.library; });
    alive["pool"] = count(pools(), [](const Pool &pool) { return !pool.is_default; });
    alive["handle"] = count(physicals());
    alive["reservation"] = static_cast<long>(reservations().size());
    for (const auto &[base, region] : regions())
        if (region.kind != RegionKind::global) ++alive[region_names[static_cast<std::size_t>(region.kind)]];
    for (const auto &[kind, number] : alive)
        if (number) std::fprintf(file, "alive %s %ld\n", kind.c_str(), number);
}

// After all handlers of the program and of the hook: the loader ends libraries last.
__attribute__((destructor)) void write_report() {
    if (levers().report.empty() || !driver().initialised || driver().process != getpid()) return;
    FILE *file = std::fopen(levers().report.c_str(), "w");
    if (!file) return;
    for (std::size_t row = 0; row < static_cast<std::size_t>(Row::count); ++row)
        if (long calls = calls_of(static_cast<Row>(row))) std::fprintf(file, "calls %s %ld\n", rows[row].symbol, calls);
    write_alive(file);
    std::fclose(file);
}

} // namespace
} // namespace sim
