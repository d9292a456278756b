// Nodes of each kind but kernels, by their typed calls.
#include "nodes.h"

#include "graph_memory.h"
#include "streams.h"

#include <algorithm>

namespace sim {
namespace {

CUresult known_context(CUcontext handle, CUcontext *context) {
    if (handle) {
        *context = handle;
        return driver().contexts.find(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    }
    Context *current = nullptr;
    SIM_TRY(current_context(&current));
    *context = current->handle;
    return CUDA_SUCCESS;
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
    if (!copyParams) return CUDA_ERROR_INVALID_VALUE;
    MemcpyPayload payload{*copyParams, nullptr};
    SIM_TRY(known_context(ctx, &payload.context));
    return add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, payload);
}

CUresult sim::cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams) {
    MemcpyPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = payload->copy;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams) {
    MemcpyPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(check_copy(*nodeParams));
    payload->copy = *nodeParams;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    if (!memsetParams) return CUDA_ERROR_INVALID_VALUE;
    MemsetPayload payload{*memsetParams, nullptr};
    SIM_TRY(known_context(ctx, &payload.context));
    return add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, payload);
}

CUresult sim::cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    MemsetPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = payload->fill;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams) {
    MemsetPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(check_fill(*nodeParams));
    payload->fill = *nodeParams;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    return add_checked(phGraphNode, hGraph, dependencies, nullptr, numDependencies, HostPayload{*nodeParams});
}

CUresult sim::cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams) {
    HostPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = payload->call;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams) {
    HostPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!nodeParams || !nodeParams->fn) return CUDA_ERROR_INVALID_VALUE;
    payload->call = *nodeParams;
    return CUDA_SUCCESS;
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
    MemFreePayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!dptr_out) return CUDA_ERROR_INVALID_VALUE;
    *dptr_out = payload->address;
    return CUDA_SUCCESS;
}
