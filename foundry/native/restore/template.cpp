#include "template.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace foundry::restore {
namespace {

struct Attribute {
    uint32_t id;
    CUkernelNodeAttrValue value;
};

class Builder {
  public:
    Builder(Session &session, uint32_t group, uint64_t record, CUcontext context)
        : session_(session), image_(*session.image), index_(group), group_(image_.groups()[group]), record_(record),
          context_(context) {}

    Reason build(Template &made) {
        made.context = context_;
        made.group = index_;
        made.record = record_;
        made.nodes.resize(group_.node_count);
        Reason reason = driver_result("cuGraphCreate", drive(real.cuGraphCreate, &made.graph, 0u));
        for (uint32_t at = 0; at < group_.node_count && reason.empty(); at++) {
            reason = add(made, at);
            if (!reason.empty()) reason = "node " + std::to_string(at) + ": " + reason;
        }
        return reason.empty() ? connect(made) : reason;
    }

  private:
    Reason add(Template &made, uint32_t at) {
        const auto &node = image_.nodes()[group_.first_node + at];
        const auto &record = image_.records()[record_ + at];
        CUgraphNode *into = &made.nodes[at];
        const CUgraphNode *none = nullptr;
        const size_t zero = 0;
        Reason reason;
        switch (node.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            CUDA_KERNEL_NODE_PARAMS parameters = kernel_parameters(session_, node, record, context_, pointers_);
            reason = driver_result("cuGraphAddKernelNode",
                                   drive(real.cuGraphAddKernelNode_v2, into, made.graph, none, zero, &parameters));
            return reason.empty() ? attributes(made, at, node) : reason;
        }
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS parameters = memset_parameters(record);
            return driver_result("cuGraphAddMemsetNode",
                                 drive(real.cuGraphAddMemsetNode, into, made.graph, none, zero, &parameters, context_));
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY: {
            CUDA_MEMCPY3D parameters = copy_parameters(session_, record, reason);
            if (!reason.empty()) return reason;
            return driver_result("cuGraphAddMemcpyNode",
                                 drive(real.cuGraphAddMemcpyNode, into, made.graph, none, zero, &parameters, context_));
        }
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
            CUevent event = session_.event(record.event.event, reason);
            if (!reason.empty()) return reason;
            auto function = node.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? real.cuGraphAddEventWaitNode
                                                                       : real.cuGraphAddEventRecordNode;
            return driver_result("adding an event node", drive(function, into, made.graph, none, zero, event));
        }
        case CU_GRAPH_NODE_TYPE_GRAPH: {
            Template child;
            reason = template_build(session_, node.child_group, record.child.first_record, context_, child);
            if (reason.empty())
                reason = driver_result("cuGraphAddChildGraphNode",
                                       drive(real.cuGraphAddChildGraphNode, into, made.graph, none, zero, child.graph));
            template_destroy(child);
            return reason;
        }
        default:
            return driver_result("cuGraphAddEmptyNode", drive(real.cuGraphAddEmptyNode, into, made.graph, none, zero));
        }
    }

    // What a node of that kernel has before anything is set: asked of the driver once for each kernel and attribute.
    Reason fresh(CUgraphNode node, uint32_t kernel, uint32_t id, CUkernelNodeAttrValue &value) {
        for (const Attribute &known : fresh_[kernel])
            if (known.id == id) return value = known.value, Reason();
        memset(&value, 0, sizeof value);
        CUresult result = drive(real.cuGraphKernelNodeGetAttribute, node, static_cast<CUkernelNodeAttrID>(id), &value);
        if (result) return driver_error("cuGraphKernelNodeGetAttribute", result);
        fresh_[kernel].push_back({id, value});
        return {};
    }

    Reason attributes(Template &made, uint32_t at, const foundry_image_node &node) {
        for (uint32_t entry = node.first_attribute; entry < node.first_attribute + node.attribute_count; entry++) {
            const auto &wanted = image_.node_attributes()[entry];
            CUkernelNodeAttrValue value;
            Reason reason = fresh(made.nodes[at], node.kernel, wanted.id, value);
            if (!reason.empty()) return reason;
            if (!memcmp(&value, wanted.value, sizeof value)) continue;
            memcpy(&value, wanted.value, sizeof value);
            CUresult result = drive(real.cuGraphKernelNodeSetAttribute, made.nodes[at],
                                    static_cast<CUkernelNodeAttrID>(wanted.id), &value);
            if (result) return driver_error(("setting launch attribute " + std::to_string(wanted.id)).c_str(), result);
            made.attributes.emplace_back(at, entry);
        }
        return {};
    }

    // In their order, in which a node gets its dependencies as the captured one has them. Drivers apply the first
    // edge's data to all edges of one call: so one call for each run of equal data.
    Reason connect(Template &made) {
        const auto edges = image_.edges().subspan(group_.first_edge, group_.edge_count);
        std::vector<CUgraphNode> from, to;
        std::vector<CUgraphEdgeData> data;
        static const uint8_t plain[8] = {};
        for (size_t begin = 0, end; begin < edges.size(); begin = end) {
            from.clear();
            to.clear();
            for (end = begin; end < edges.size() && !memcmp(edges[end].data, edges[begin].data, sizeof plain); end++) {
                from.push_back(made.nodes[edges[end].from]);
                to.push_back(made.nodes[edges[end].to]);
            }
            CUresult result;
            if (!memcmp(edges[begin].data, plain, sizeof plain)) {
                result = drive(real.cuGraphAddDependencies, made.graph, static_cast<const CUgraphNode *>(from.data()),
                               static_cast<const CUgraphNode *>(to.data()), from.size());
            } else {
                CUgraphEdgeData value;
                memcpy(&value, edges[begin].data, sizeof value);
                data.assign(from.size(), value);
                result =
                    drive(real.cuGraphAddDependencies_v2, made.graph, static_cast<const CUgraphNode *>(from.data()),
                          static_cast<const CUgraphNode *>(to.data()),
                          static_cast<const CUgraphEdgeData *>(data.data()), from.size());
            }
            if (result) return driver_error("cuGraphAddDependencies", result);
        }
        return {};
    }

    Session &session_;
    const Image &image_;
    const uint32_t index_;
    const foundry_image_group &group_;
    const uint64_t record_;
    const CUcontext context_;
    std::vector<void *> pointers_;
    std::unordered_map<uint32_t, std::vector<Attribute>> fresh_;
};

bool same_kernel_values(const Image &image, const foundry_image_record &left, const foundry_image_record &right) {
    const uint8_t *bytes = image.parameter_bytes().data();
    return !memcmp(left.kernel.grid, right.kernel.grid, sizeof left.kernel.grid) &&
           !memcmp(left.kernel.block, right.kernel.block, sizeof left.kernel.block) &&
           left.kernel.shared_bytes == right.kernel.shared_bytes &&
           (left.kernel.parameter_offset == right.kernel.parameter_offset ||
            !memcmp(bytes + left.kernel.parameter_offset, bytes + right.kernel.parameter_offset,
                    left.kernel.parameter_size));
}

// Equal entries of the image are stored once, so equal attributes have equal places.
bool same_kernel(const foundry_image_node &left, const foundry_image_node &right) {
    return left.kernel == right.kernel && left.first_attribute == right.first_attribute &&
           left.attribute_count == right.attribute_count;
}

// Makes the nodes of a template those of another member, of the same group or of one of the same shape.
class Rewriter {
  public:
    Rewriter(Session &session, Template &held) : session_(session), image_(*session.image), held_(held) {}

    // The kernel stays.
    Reason values(const foundry_image_node &node, const foundry_image_record &before, const foundry_image_record &after,
                  uint32_t at) {
        Reason reason;
        switch (node.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
            if (same_kernel_values(image_, before, after)) return {};
            return set(node, after, at);
        }
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            if (!memcmp(&before, &after, sizeof after)) return {};
            const CUDA_MEMSET_NODE_PARAMS parameters = memset_parameters(after);
            return driver_result("cuGraphMemsetNodeSetParams",
                                 drive(real.cuGraphMemsetNodeSetParams, held_.nodes[at], &parameters));
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY: {
            if (!memcmp(image_.copy(before.memcpy.copy), image_.copy(after.memcpy.copy), sizeof(CUDA_MEMCPY3D)))
                return {};
            const CUDA_MEMCPY3D parameters = copy_parameters(session_, after, reason);
            if (!reason.empty()) return reason;
            return driver_result("cuGraphMemcpyNodeSetParams",
                                 drive(real.cuGraphMemcpyNodeSetParams, held_.nodes[at], &parameters));
        }
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
            if (before.event.event == after.event.event) return {};
            CUevent event = session_.event(after.event.event, reason);
            if (!reason.empty()) return reason;
            auto function = node.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? real.cuGraphEventWaitNodeSetEvent
                                                                       : real.cuGraphEventRecordNodeSetEvent;
            return driver_result("setting an event node", drive(function, held_.nodes[at], event));
        }
        default:
            return {};
        }
    }

    // Another kernel. Launch attributes stay with the node, so each is set to what the new kernel had, and all are read
    // back later. An attribute that only the old kernel had could not be told from a fresh node's.
    Reason kernel(const foundry_image_node &node, const foundry_image_node &old, const foundry_image_record &record,
                  uint32_t at) {
        const auto wanted = image_.node_attributes().subspan(node.first_attribute, node.attribute_count);
        const auto known = image_.node_attributes().subspan(old.first_attribute, old.attribute_count);
        auto same_id = [](const auto &left, const auto &right) { return left.id == right.id; };
        if (!std::equal(wanted.begin(), wanted.end(), known.begin(), known.end(), same_id))
            return "has other launch attributes than the node that it is made of";
        Reason reason = set(node, record, at);
        if (!reason.empty()) return reason;
        std::erase_if(held_.attributes, [&](const auto &entry) { return entry.first == at; });
        for (size_t index = 0; index < wanted.size(); index++) {
            held_.attributes.emplace_back(at, node.first_attribute + static_cast<uint32_t>(index));
            if (!memcmp(wanted[index].value, known[index].value, sizeof wanted[index].value)) continue;
            CUkernelNodeAttrValue value;
            memcpy(&value, wanted[index].value, sizeof value);
            CUresult result = drive(real.cuGraphKernelNodeSetAttribute, held_.nodes[at],
                                    static_cast<CUkernelNodeAttrID>(wanted[index].id), &value);
            if (result)
                return driver_error(("setting launch attribute " + std::to_string(wanted[index].id)).c_str(), result);
        }
        return template_verify_kernel(session_, node, record, held_.nodes[at]);
    }

  private:
    Reason set(const foundry_image_node &node, const foundry_image_record &record, uint32_t at) {
        const CUDA_KERNEL_NODE_PARAMS parameters = kernel_parameters(session_, node, record, held_.context, pointers_);
        return driver_result("cuGraphKernelNodeSetParams",
                             drive(real.cuGraphKernelNodeSetParams_v2, held_.nodes[at], &parameters));
    }

    Session &session_;
    const Image &image_;
    Template &held_;
    std::vector<void *> pointers_;
};

} // namespace

CUDA_KERNEL_NODE_PARAMS kernel_parameters(Session &session, const foundry_image_node &node,
                                          const foundry_image_record &record, CUcontext context,
                                          std::vector<void *> &pointers) {
    const Image &image = *session.image;
    const auto &kernel = image.kernels()[node.kernel];
    const KernelState &state = session.kernels[node.kernel];
    const uint8_t *bytes = image.parameter_bytes().data() + record.kernel.parameter_offset;
    pointers.clear();
    for (const auto &parameter : image.parameters().subspan(kernel.first_parameter, kernel.parameter_count))
        pointers.push_back(const_cast<uint8_t *>(bytes + parameter.offset));
    pointers.push_back(nullptr);
    CUDA_KERNEL_NODE_PARAMS parameters = {};
    parameters.func = state.function;
    parameters.kern = state.kernel;
    parameters.ctx = context;
    parameters.gridDimX = record.kernel.grid[0];
    parameters.gridDimY = record.kernel.grid[1];
    parameters.gridDimZ = record.kernel.grid[2];
    parameters.blockDimX = record.kernel.block[0];
    parameters.blockDimY = record.kernel.block[1];
    parameters.blockDimZ = record.kernel.block[2];
    parameters.sharedMemBytes = record.kernel.shared_bytes;
    parameters.kernelParams = pointers.data();
    return parameters;
}

CUDA_MEMSET_NODE_PARAMS memset_parameters(const foundry_image_record &record) {
    CUDA_MEMSET_NODE_PARAMS parameters = {};
    parameters.dst = record.memset.destination;
    parameters.pitch = record.memset.pitch;
    parameters.value = record.memset.value;
    parameters.elementSize = record.memset.element_size;
    parameters.width = record.memset.width;
    parameters.height = record.memset.height;
    return parameters;
}

CUDA_MEMCPY3D copy_parameters(Session &session, const foundry_image_record &record, Reason &reason) {
    CUDA_MEMCPY3D parameters;
    static_assert(sizeof parameters == 200);
    memcpy(&parameters, session.image->copy(record.memcpy.copy), sizeof parameters);
    auto foreign = [](CUmemorytype type) { return type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED; };
    if (foreign(parameters.srcMemoryType) || foreign(parameters.dstMemoryType))
        reason = "a copy from or to host memory or an array";
    return parameters;
}

Reason template_build(Session &session, uint32_t group, uint64_t record, CUcontext context, Template &made) {
    Reason reason = Builder(session, group, record, context).build(made);
    if (reason.empty()) reason = template_verify(session, group, made);
    if (!reason.empty()) template_destroy(made);
    return reason;
}

Reason template_rewrite(Session &session, uint32_t group_index, uint64_t record, Template &held) {
    const Image &image = *session.image;
    const auto &group = image.groups()[group_index], &before = image.groups()[held.group];
    Rewriter rewriter(session, held);
    for (uint32_t at = 0; at < group.node_count && held.record != record; at++) {
        const auto &node = image.nodes()[group.first_node + at], &old = image.nodes()[before.first_node + at];
        const auto &values = image.records()[record + at];
        Reason reason = same_kernel(node, old) ? rewriter.values(node, image.records()[held.record + at], values, at)
                                               : rewriter.kernel(node, old, values, at);
        if (!reason.empty()) return "node " + std::to_string(at) + ": " + reason;
    }
    held.group = group_index;
    held.record = record;
    return template_verify_attributes(session, held);
}

void template_destroy(Template &held) {
    if (held.graph) drive(real.cuGraphDestroy, held.graph);
    held = Template();
}

} // namespace foundry::restore
