// What a restore tells: timings for the spool, and one line for whoever started the program.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "../hook/counters.h"
#include "../hook/spool.h"
#include "../hook/state.h"
#include "session.h"

namespace foundry::restore {

void Session::spool_timings() {
    uint64_t background;
    {
        std::lock_guard<std::mutex> lock(mutex);
        background = background_so_far();
    }
    const std::pair<const char *, uint64_t> all[] = {
        {"image_wait", times.image_wait},
        {"image_check", times.image_check},
        {"map", times.map},
        {"images", times.images},
        {"kernels", times.kernels},
        {"graphs", times.graphs},
        {"build", times.build},
        {"verify", times.verify},
        {"instantiate", times.instantiate},
        {"background", background},
        {"early", times.early},
        {"ready", times.ready},
        {"blocked", times.blocked},
    };
    Frame frame(FOUNDRY_EVENT_TIMINGS);
    frame.u32(static_cast<uint32_t>(std::size(all)));
    for (const auto &[name, nanoseconds] : all) frame.str(name).u64(nanoseconds);
    frame.write();
    const std::pair<const char *, uint64_t> counted[] = {{"background_nanoseconds", background},
                                                         {"blocked_nanoseconds", times.blocked}};
    for (const auto &[name, nanoseconds] : counted) {
        const uint64_t before = counter_value(name);
        if (nanoseconds > before) count_named(name, nanoseconds - before);
    }
}

void Session::summary() {
    unsigned restored = 0, given_up = 0;
    bool elsewhere;
    Reason why;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (summary_told_) return;
        summary_told_ = true;
        elsewhere = moved;
        for (const GraphState &state : graphs) {
            if (state.handed) {
                restored++;
            } else if (state.told) {
                given_up++;
                if (why.empty()) why = state.given_up;
            }
        }
    }
    if (quiet()) return;
    auto plural = [](unsigned long long count, const char *word) {
        return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
    };
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.3f",
             static_cast<double>(times.image_wait + times.image_check + times.ready) * 1e-9);
    std::string line = "foundry: " + plural(restored, "graph") + " restored, " +
                       plural(counter_value("warm_ups_skipped"), "warm-up") + " and " +
                       plural(counter_value("captures_skipped"), "capture") + " skipped, ready in " + seconds + " s";
    if (elsewhere) line += ", at other addresses";
    const double blocked = static_cast<double>(std::max(counter_value("graphs_blocked_ns"), times.blocked.load()));
    const double saved = static_cast<double>(image->header().captured_nanoseconds) - blocked;
    if (restored && saved >= 5e6) {
        snprintf(seconds, sizeof seconds, "%.2f", saved * 1e-9);
        line += std::string(", ") + seconds + " s saved";
    }
    if (given_up) line += "; given up: " + std::to_string(given_up) + " (" + why + ")";
    if (image->header().simulated) line += " [simulated]";
    line += "\n";
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

} // namespace foundry::restore
