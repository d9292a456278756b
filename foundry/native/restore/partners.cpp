#include "partners.h"

#include <set>
#include <vector>

namespace foundry::restore {
namespace {

void collect(const Image &image, uint32_t group, uint64_t record, std::set<uint32_t> &events) {
    const auto &topology = image.groups()[group];
    for (uint32_t at = 0; at < topology.node_count; at++) {
        const auto &node = image.nodes()[topology.first_node + at];
        const auto &values = image.records()[record + at];
        if (node.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || node.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
            events.insert(values.event.event);
        else if (node.type == CU_GRAPH_NODE_TYPE_GRAPH)
            collect(image, node.child_group, values.child.first_record, events);
    }
}

std::vector<uint32_t> partners_of(const Image &image, uint32_t graph) {
    std::vector<std::set<uint32_t>> named(image.graphs().size());
    for (uint32_t at = 0; at < named.size(); at++)
        if (image.graphs()[at].restorable)
            collect(image, image.graphs()[at].group, image.graphs()[at].first_record, named[at]);
    std::vector<uint32_t> found;
    std::vector<bool> seen(named.size());
    std::set<uint32_t> tied = named[graph];
    seen[graph] = true;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t at = 0; at < named.size(); at++) {
            if (seen[at]) continue;
            bool shares = false;
            for (uint32_t event : named[at]) shares = shares || tied.contains(event);
            if (!shares) continue;
            seen[at] = more = true;
            found.push_back(at);
            tied.insert(named[at].begin(), named[at].end());
        }
    }
    return found;
}

Reason given_up(Session &session, uint32_t graph) {
    std::lock_guard<std::mutex> lock(session.mutex);
    return session.graphs[graph].given_up;
}

} // namespace

Reason wait_with_partners(Session &session, uint32_t graph) {
    const Image &image = *session.image;
    if (!image.events().empty() && image.graphs()[graph].restorable) {
        for (uint32_t partner : partners_of(image, graph)) {
            Reason reason = given_up(session, partner);
            if (reason.empty()) reason = session.wait(partner);
            if (reason.empty()) continue;
            const auto &entry = image.graphs()[partner];
            return std::string("graph `") + image.string(entry.set) + "` `" + image.string(entry.key) +
                   "`, which uses the same event, is not restored: " + reason;
        }
    }
    return session.wait(graph);
}

} // namespace foundry::restore
