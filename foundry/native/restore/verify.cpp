// Reads a built graph back from the driver. What differs from the archive is given up before anybody can launch it.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "template.h"

namespace foundry::restore {
namespace {

struct Edge {
    uint32_t from, to;
    uint8_t data[8];
    bool operator<(const Edge &other) const {
        if (from != other.from) return from < other.from;
        if (to != other.to) return to < other.to;
        return memcmp(data, other.data, sizeof data) < 0;
    }
    bool operator==(const Edge &other) const {
        return from == other.from && to == other.to && !memcmp(data, other.data, sizeof data);
    }
};

Reason verify_edges(Session &session, const foundry_image_group &group, const Template &built) {
    size_t count = 0;
    const bool with_data = real.cuGraphGetEdges_v2 != nullptr;
    auto read = [&](CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data) {
        return with_data ? drive(real.cuGraphGetEdges_v2, built.graph, from, to, data, &count)
                         : drive(real.cuGraphGetEdges, built.graph, from, to, &count);
    };
    if (CUresult result = read(nullptr, nullptr, nullptr)) return driver_error("cuGraphGetEdges", result);
    if (count != group.edge_count)
        return "reads back with " + std::to_string(count) + " edges of " + std::to_string(group.edge_count);
    if (!count) return {};
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> data(count);
    if (CUresult result = read(from.data(), to.data(), data.data())) return driver_error("cuGraphGetEdges", result);
    std::unordered_map<CUgraphNode, uint32_t> index;
    index.reserve(built.nodes.size());
    for (uint32_t at = 0; at < built.nodes.size(); at++) index[built.nodes[at]] = at;
    std::vector<Edge> found(count), wanted;
    for (size_t at = 0; at < count; at++) {
        auto source = index.find(from[at]), target = index.find(to[at]);
        if (source == index.end() || target == index.end())
            return "reads back with an edge to a node that was not added";
        found[at].from = source->second;
        found[at].to = target->second;
        memcpy(found[at].data, &data[at], sizeof found[at].data);
    }
    for (const auto &edge : session.image->edges().subspan(group.first_edge, group.edge_count)) {
        wanted.push_back({edge.from, edge.to, {}});
        memcpy(wanted.back().data, edge.data, sizeof edge.data);
    }
    std::sort(found.begin(), found.end());
    std::sort(wanted.begin(), wanted.end());
    return found == wanted ? Reason() : "reads back with other edges";
}

} // namespace

Reason template_verify_kernel(Session &session, const foundry_image_node &node, const foundry_image_record &record,
                              CUgraphNode handle) {
    const Image &image = *session.image;
    const auto &kernel = image.kernels()[node.kernel];
    const KernelState &state = session.kernels[node.kernel];
    CUDA_KERNEL_NODE_PARAMS built = {};
    if (CUresult result = drive(real.cuGraphKernelNodeGetParams_v2, handle, &built))
        return driver_error("cuGraphKernelNodeGetParams", result);
    if ((state.kernel && built.kern != state.kernel) || (state.function && built.func != state.function))
        return "reads back as another kernel";
    const uint32_t shape[6] = {built.gridDimX,  built.gridDimY,  built.gridDimZ,
                               built.blockDimX, built.blockDimY, built.blockDimZ};
    if (memcmp(shape, record.kernel.grid, sizeof record.kernel.grid) ||
        memcmp(shape + 3, record.kernel.block, sizeof record.kernel.block) ||
        built.sharedMemBytes != record.kernel.shared_bytes)
        return "reads back with another grid, block or shared memory";
    if (!kernel.parameter_count) return {};
    if (!built.kernelParams) return "reads back without parameters";
    const uint8_t *bytes = image.parameter_bytes().data() + record.kernel.parameter_offset;
    for (uint32_t at = 0; at < kernel.parameter_count; at++) {
        const auto &parameter = image.parameters()[kernel.first_parameter + at];
        if (!built.kernelParams[at] || memcmp(built.kernelParams[at], bytes + parameter.offset, parameter.size))
            return "reads back with another parameter " + std::to_string(at);
    }
    return {};
}

Reason template_verify_attributes(Session &session, const Template &built) {
    for (const auto &[node, entry] : built.attributes) {
        const auto &wanted = session.image->node_attributes()[entry];
        CUkernelNodeAttrValue value;
        memset(&value, 0, sizeof value);
        CUresult result = drive(real.cuGraphKernelNodeGetAttribute, built.nodes[node],
                                static_cast<CUkernelNodeAttrID>(wanted.id), &value);
        if (result) return driver_error("cuGraphKernelNodeGetAttribute", result);
        if (memcmp(&value, wanted.value, sizeof value))
            return "node " + std::to_string(node) + ": launch attribute " + std::to_string(wanted.id) +
                   " reads back with another value";
    }
    return {};
}

Reason template_verify(Session &session, uint32_t group_index, const Template &built) {
    Stopwatch watch(session.times.verify);
    const Image &image = *session.image;
    const auto &group = image.groups()[group_index];
    size_t count = 0;
    if (CUresult result = drive(real.cuGraphGetNodes, built.graph, static_cast<CUgraphNode *>(nullptr), &count))
        return driver_error("cuGraphGetNodes", result);
    if (count != group.node_count)
        return "reads back with " + std::to_string(count) + " nodes of " + std::to_string(group.node_count);
    for (uint32_t at = 0; at < group.node_count; at++) {
        const auto &node = image.nodes()[group.first_node + at];
        if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
        Reason reason = template_verify_kernel(session, node, image.records()[built.record + at], built.nodes[at]);
        if (!reason.empty()) return "node " + std::to_string(at) + ": " + reason;
    }
    Reason reason = verify_edges(session, group, built);
    return reason.empty() ? template_verify_attributes(session, built) : reason;
}

} // namespace foundry::restore
