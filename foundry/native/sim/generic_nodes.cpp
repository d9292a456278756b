// cuGraphAddNode and its like: one description for every kind of node, and conditionals.
#include "generic_nodes.h"

#include "kernel_nodes.h"
#include "nodes.h"
#include "streams.h"

#include <cstring>

namespace sim {
namespace {

struct Conditional {
    CUgraph graph;
    unsigned value, default_value, flags;
};

std::map<CUgraphConditionalHandle, Conditional> &conditionals() {
    static auto *all = new std::map<CUgraphConditionalHandle, Conditional>;
    return *all;
}

CUresult conditional_payload(CUgraphNodeParams &parameters, ConditionalPayload *payload) {
    CUDA_CONDITIONAL_NODE_PARAMS &condition = parameters.conditional;
    if (!conditionals().contains(condition.handle) || condition.size == 0 || condition.type > CU_GRAPH_COND_TYPE_SWITCH)
        return CUDA_ERROR_INVALID_VALUE;
    if (condition.type == CU_GRAPH_COND_TYPE_WHILE && condition.size != 1) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned body = 0; body < condition.size; ++body) {
        payload->bodies.push_back(make_graph());
        payload->bodies.back()->owned = true;
        payload->handles.push_back(payload->bodies.back()->handle);
    }
    payload->condition = condition;
    payload->default_value = conditionals()[condition.handle].default_value;
    return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS kernel_params(const CUgraphNodeParams &parameters) {
    CUDA_KERNEL_NODE_PARAMS result = {};
    static_assert(sizeof result == sizeof parameters.kernel);
    std::memcpy(&result, &parameters.kernel, sizeof result);
    return result;
}

CUDA_MEMSET_NODE_PARAMS memset_params(const CUDA_MEMSET_NODE_PARAMS_v2 &fill) {
    return {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
}

// The kinds that can be made and changed alike.
CUresult plain_payload(const CUgraphNodeParams &parameters, Payload *payload) {
    switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        KernelPayload kernel;
        SIM_TRY(kernel_payload(kernel_params(parameters), &kernel));
        *payload = std::move(kernel);
        return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
        MemcpyPayload copy{parameters.memcpy.copyParams, parameters.memcpy.copyCtx};
        SIM_TRY(context_or_current(&copy.context));
        *payload = copy;
        return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        MemsetPayload fill{memset_params(parameters.memset), parameters.memset.ctx};
        SIM_TRY(context_or_current(&fill.context));
        *payload = fill;
        return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
        *payload = HostPayload{{parameters.host.fn, parameters.host.userData}};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: {
        EventWaitPayload wait;
        SIM_TRY(find_event(parameters.eventWait.event, &wait.event));
        *payload = wait;
        return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
        EventRecordPayload record;
        SIM_TRY(find_event(parameters.eventRecord.event, &record.event));
        *payload = record;
        return CUDA_SUCCESS;
    }
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult new_payload(CUgraphNodeParams &parameters, Payload *payload) {
    switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *payload = EmptyPayload{};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
        ChildPayload child;
        SIM_TRY(child_payload(parameters.graph.graph, &child));
        *payload = std::move(child);
        return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        MemAllocPayload allocation;
        CUDA_MEM_ALLOC_NODE_PARAMS old = {};
        static_assert(sizeof old == sizeof parameters.alloc);
        std::memcpy(&old, &parameters.alloc, sizeof old);
        SIM_TRY(alloc_payload(old, &allocation));
        parameters.alloc.dptr = old.dptr;
        *payload = std::move(allocation);
        return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        *payload = MemFreePayload{parameters.free.dptr};
        return parameters.free.dptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
        ConditionalPayload conditional;
        SIM_TRY(conditional_payload(parameters, &conditional));
        *payload = std::move(conditional);
        return CUDA_SUCCESS;
    }
    default:
        return plain_payload(parameters, payload);
    }
}

CUresult add(CUgraphNode *handle, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
             std::size_t count, CUgraphNodeParams *parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    Payload payload;
    SIM_TRY(new_payload(*parameters, &payload));
    SIM_TRY(add_checked(handle, graph, dependencies, data, count, std::move(payload)));
    // The arrays that a conditional node gives out are its own, so they are there only once it is.
    Node *node = graph_registry().nodes.find(*handle);
    if (auto *conditional = std::get_if<ConditionalPayload>(&node->payload)) {
        parameters->conditional.phGraph_out = conditional->handles.data();
        conditional->condition.phGraph_out = conditional->handles.data();
    }
    return CUDA_SUCCESS;
}

} // namespace

CUresult changed_payload(const CUgraphNodeParams &parameters, const Payload &old, Payload *payload) {
    if (type_of(old) != parameters.type) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(plain_payload(parameters, payload));
    if (auto *kernel = std::get_if<KernelPayload>(payload)) {
        const auto &before = std::get<KernelPayload>(old);
        kernel->attributes = before.attributes;
        if (kernel->function->context != before.function->context) return CUDA_ERROR_INVALID_VALUE;
    }
    return check_node(*payload);
}

} // namespace sim

using sim::Node;

CUresult sim::cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                             size_t numDependencies, CUgraphNodeParams *nodeParams) {
    return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, nodeParams);
}

CUresult sim::cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                CUgraphNodeParams *nodeParams) {
    return add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
}

CUresult sim::cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams) {
    Node *node = nullptr;
    SIM_TRY(find_node(hNode, &node));
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    Payload payload;
    SIM_TRY(changed_payload(*nodeParams, node->payload, &payload));
    node->payload = std::move(payload);
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx,
                                             unsigned int defaultLaunchValue, unsigned int flags) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(hGraph, &graph));
    if (!pHandle_out || (flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT) != 0) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(context_or_current(&ctx));
    *pHandle_out = fresh_handle();
    conditionals()[*pHandle_out] = {hGraph, defaultLaunchValue, defaultLaunchValue, flags};
    return CUDA_SUCCESS;
}
