// Nodes of each kind but kernels, by their typed calls.
#include "nodes.h"

#include "graph_memory.h"
#include "streams.h"

#include <algorithm>

namespace sim {
namespace {

// Kinds whose payload is what the program described, and for some the context that it does that in.
template <class Kind, class Parameters>
CUresult add_in_context(CUgraphNode *handle, CUgraph graph, const CUgraphNode *dependencies, std::size_t count,
                        const Parameters *parameters, CUcontext context) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(context_or_current(&context));
    return add_checked(handle, graph, dependencies, nullptr, count, Kind{*parameters, context});
}

template <class Kind, class Parameters>
CUresult get_parameters(CUgraphNode node, Parameters Kind::*member, Parameters *parameters) {
    Kind *payload = nullptr;
    SIM_TRY(find_payload(node, &payload));
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    *parameters = payload->*member;
    return CUDA_SUCCESS;
}

template <class Kind, class Parameters>
CUresult set_parameters(CUgraphNode node, Parameters Kind::*member, CUresult (*check)(const Parameters &),
                        const Parameters *parameters) {
    Kind *payload = nullptr;
    SIM_TRY(find_payload(node, &payload));
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(check(*parameters));
    payload->*member = *parameters;
    return CUDA_SUCCESS;
}

CUresult check_call(const CUDA_HOST_NODE_PARAMS &call) {
    return call.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <class Kind> CUresult event_payload(CUevent handle, Kind *payload) {
    return find_event(handle, &payload->event);
}

template <class Kind> CUresult get_event(CUgraphNode node, CUevent *event) {
    Kind *payload = nullptr;
    SIM_TRY(find_payload(node, &payload));
    if (!event) return CUDA_ERROR_INVALID_VALUE;
    *event = payload->event->handle;
    return CUDA_SUCCESS;
}

template <class Kind> CUresult set_event(CUgraphNode node, CUevent event) {
    Kind *payload = nullptr;
    SIM_TRY(find_payload(node, &payload));
    return event_payload(event, payload);
}

bool holds_memory_nodes(const Graph &graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const std::shared_ptr<Node> &node) {
        return std::holds_alternative<MemAllocPayload>(node->payload) ||
               std::holds_alternative<MemFreePayload>(node->payload) ||
               std::holds_alternative<ConditionalPayload>(node->payload);
    });
}

} // namespace

CUresult context_or_current(CUcontext *context) {
    if (*context) return driver().contexts.find(*context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    Context *current = nullptr;
    SIM_TRY(current_context(&current));
    *context = current->handle;
    return CUDA_SUCCESS;
}

CUresult add_checked(CUgraphNode *handle, CUgraph graph_handle, const CUgraphNode *dependencies,
                     const CUgraphEdgeData *data, std::size_t count, Payload payload) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(graph_handle, &graph));
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Link> links;
    SIM_TRY(find_links(*graph, dependencies, data, count, &links));
    SIM_TRY(check_node(payload));
    return add_node(*graph, std::move(payload), links, handle);
}

CUresult child_payload(CUgraph child, ChildPayload *payload) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(child, &graph));
    if (holds_memory_nodes(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
    payload->graph = clone_graph(*graph);
    payload->graph->owned = true;
    return CUDA_SUCCESS;
}

CUresult alloc_payload(CUDA_MEM_ALLOC_NODE_PARAMS &parameters, MemAllocPayload *payload) {
    const CUmemPoolProps &pool = parameters.poolProps;
    if (parameters.bytesize == 0 || pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE || !find_device(pool.location.id) ||
        (parameters.accessDescCount && !parameters.accessDescs))
        return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(make_memory(pool.location.id, parameters.bytesize, &payload->memory));
    parameters.dptr = payload->memory->address;
    payload->allocation = parameters;
    payload->access.assign(parameters.accessDescs, parameters.accessDescs + parameters.accessDescCount);
    return CUDA_SUCCESS;
}

} // namespace sim

using namespace sim;

CUresult sim::cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  size_t numDependencies) {
    return add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, EmptyPayload{});
}

CUresult sim::cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
    return add_in_context<MemcpyPayload>(phGraphNode, hGraph, dependencies, numDependencies, copyParams, ctx);
}

CUresult sim::cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams) {
    return get_parameters(hNode, &MemcpyPayload::copy, nodeParams);
}

CUresult sim::cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams) {
    return set_parameters(hNode, &MemcpyPayload::copy, check_copy, nodeParams);
}

CUresult sim::cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    return add_in_context<MemsetPayload>(phGraphNode, hGraph, dependencies, numDependencies, memsetParams, ctx);
}

CUresult sim::cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    return get_parameters(hNode, &MemsetPayload::fill, nodeParams);
}

CUresult sim::cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    return set_parameters(hNode, &MemsetPayload::fill, check_fill, nodeParams);
}

CUresult sim::cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    return add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, HostPayload{*nodeParams});
}

CUresult sim::cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams) {
    return get_parameters(hNode, &HostPayload::call, nodeParams);
}

CUresult sim::cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    return set_parameters(hNode, &HostPayload::call, check_call, nodeParams);
}

CUresult sim::cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                       size_t numDependencies, CUgraph childGraph) {
    ChildPayload payload;
    SIM_TRY(child_payload(childGraph, &payload));
    std::shared_ptr<Graph> child = payload.graph;
    CUresult result = add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, std::move(payload));
    if (result != CUDA_SUCCESS) forget_graph(*child);
    return result;
}

CUresult sim::cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph) {
    ChildPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!phGraph) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = payload->graph->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                        size_t numDependencies, CUevent event) {
    EventRecordPayload payload;
    SIM_TRY(event_payload(event, &payload));
    return add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, payload);
}

CUresult sim::cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out) {
    return get_event<EventRecordPayload>(hNode, event_out);
}

CUresult sim::cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
    return set_event<EventRecordPayload>(hNode, event);
}

CUresult sim::cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                      size_t numDependencies, CUevent event) {
    EventWaitPayload payload;
    SIM_TRY(event_payload(event, &payload));
    return add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, payload);
}

CUresult sim::cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out) {
    return get_event<EventWaitPayload>(hNode, event_out);
}

CUresult sim::cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
    return set_event<EventWaitPayload>(hNode, event);
}

CUresult sim::cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                     size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) {
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    MemAllocPayload payload;
    SIM_TRY(alloc_payload(*nodeParams, &payload));
    return add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, payload);
}

CUresult sim::cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out) {
    MemAllocPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!params_out) return CUDA_ERROR_INVALID_VALUE;
    *params_out = payload->allocation;
    params_out->accessDescs = payload->access.empty() ? nullptr : payload->access.data();
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies, CUdeviceptr dptr) {
    if (!dptr) return CUDA_ERROR_INVALID_VALUE;
    return add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, MemFreePayload{dptr});
}

CUresult sim::cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out) {
    return get_parameters(hNode, &MemFreePayload::address, dptr_out);
}
