// Changing an exec in place, and refusing to, as the driver does.
#include "exec.h"
#include "generic_nodes.h"
#include "kernel_nodes.h"
#include "streams.h"

#include <cstring>
#include <unordered_map>

namespace sim {
namespace {

struct Verdict {
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    CUgraphNode node = nullptr, from = nullptr;
};

bool same_value(const LaunchAttributes &one, const LaunchAttributes &other, CUlaunchAttributeID id) {
    return std::memcmp(&one.value(id), &other.value(id), sizeof(CUlaunchAttributeValue)) == 0;
}

CUgraphExecUpdateResult compare(const KernelPayload &old, const KernelPayload &fresh) {
    if (old.function->context != fresh.function->context) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    if (!same_value(old.attributes, fresh.attributes, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) ||
        !same_value(old.attributes, fresh.attributes, CU_LAUNCH_ATTRIBUTE_COOPERATIVE))
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    return check_work(fresh) == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                             : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

CUgraphExecUpdateResult compare(const MemcpyPayload &old, const MemcpyPayload &fresh) {
    bool flat = old.copy.Height <= 1 && old.copy.Depth <= 1 && fresh.copy.Height <= 1 && fresh.copy.Depth <= 1;
    bool same_kinds =
        old.copy.srcMemoryType == fresh.copy.srcMemoryType && old.copy.dstMemoryType == fresh.copy.dstMemoryType;
    bool same_size = old.copy.WidthInBytes == fresh.copy.WidthInBytes && old.copy.Height == fresh.copy.Height &&
                     old.copy.Depth == fresh.copy.Depth;
    return same_kinds && old.context == fresh.context && (flat || same_size)
               ? CU_GRAPH_EXEC_UPDATE_SUCCESS
               : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

CUgraphExecUpdateResult compare(const MemsetPayload &old, const MemsetPayload &fresh) {
    bool flat = old.fill.height <= 1 && fresh.fill.height <= 1;
    bool same_size = old.fill.width == fresh.fill.width && old.fill.height == fresh.fill.height;
    return old.context == fresh.context && (flat || same_size) ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                               : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

CUgraphExecUpdateResult compare(const MemAllocPayload &, const MemAllocPayload &) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
}

CUgraphExecUpdateResult compare(const MemFreePayload &, const MemFreePayload &) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
}

template <class Kind> CUgraphExecUpdateResult compare(const Kind &, const Kind &) {
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

// Nodes answer to each other by their place in the order of creation, dependencies by theirs among a node's.
Verdict compare_graphs(const Graph &old, const Graph &fresh) {
    if (old.nodes.size() != fresh.nodes.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr, nullptr};
    std::unordered_map<const Node *, const Node *> twin;
    for (std::size_t index = 0; index < old.nodes.size(); ++index)
        twin[fresh.nodes[index].get()] = old.nodes[index].get();
    for (std::size_t index = 0; index < old.nodes.size(); ++index) {
        const Node &before = *old.nodes[index], &after = *fresh.nodes[index];
        if (before.dependencies.size() != after.dependencies.size())
            return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, after.handle, nullptr};
        for (std::size_t place = 0; place < after.dependencies.size(); ++place) {
            const Link &known = before.dependencies[place], &link = after.dependencies[place];
            if (known.node != twin[link.node] || std::memcmp(&known.data, &link.data, sizeof link.data) != 0)
                return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, after.handle, link.node->handle};
        }
        if (before.payload.index() != after.payload.index())
            return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, after.handle, nullptr};
        if (auto *child = std::get_if<ChildPayload>(&after.payload)) {
            Verdict inner = compare_graphs(*std::get<ChildPayload>(before.payload).graph, *child->graph);
            if (inner.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return inner;
        }
        CUgraphExecUpdateResult result = may_take_over(before.payload, after.payload);
        if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return {result, after.handle, nullptr};
    }
    return {};
}

void take_over_graph(const Graph &old, const Graph &fresh, Exec &exec) {
    for (std::size_t index = 0; index < old.nodes.size(); ++index) {
        Node &before = *old.nodes[index], &after = *fresh.nodes[index];
        before.original = after.handle;
        if (auto *child = std::get_if<ChildPayload>(&after.payload))
            take_over_graph(*std::get<ChildPayload>(before.payload).graph, *child->graph, exec);
        else
            take_over(before.payload, after.payload);
    }
    for (const std::shared_ptr<Node> &node : old.nodes) exec.twins[node->original] = node.get();
}

CUresult update(CUgraphExec exec_handle, CUgraph graph_handle, Verdict *verdict) {
    Exec *exec = nullptr;
    SIM_TRY(find_exec(exec_handle, &exec));
    Graph *graph = nullptr;
    SIM_TRY(find_graph(graph_handle, &graph));
    *verdict = compare_graphs(*exec->graph, *graph);
    if (verdict->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    take_over_graph(*exec->graph, *graph, *exec);
    // Else an exec that is updated from one graph after the other would remember them all.
    std::erase_if(exec->twins, [](const auto &known) { return !graph_registry().nodes.find(known.first); });
    return CUDA_SUCCESS;
}

CUresult set_kernel(CUgraphExec exec, CUgraphNode node, KernelPayload fresh) {
    KernelPayload *old = nullptr;
    SIM_TRY(find_twin_payload(exec, node, &old));
    fresh.attributes = old->attributes;
    SIM_TRY(check_work(fresh));
    if (may_take_over(*old, fresh) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    *old = std::move(fresh);
    return CUDA_SUCCESS;
}

template <class Kind> CUresult set_checked(CUgraphExec exec, CUgraphNode node, Kind fresh) {
    Kind *old = nullptr;
    SIM_TRY(find_twin_payload(exec, node, &old));
    SIM_TRY(check_work(fresh));
    if (may_take_over(*old, fresh) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    *old = std::move(fresh);
    return CUDA_SUCCESS;
}

template <class Kind> CUresult set_event(CUgraphExec exec, CUgraphNode node, CUevent event) {
    Kind *old = nullptr;
    SIM_TRY(find_twin_payload(exec, node, &old));
    return find_event(event, &old->event);
}

CUresult context_or_current(CUcontext *context) {
    if (*context) return driver().contexts.find(*context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    Context *current = nullptr;
    SIM_TRY(current_context(&current));
    *context = current->handle;
    return CUDA_SUCCESS;
}

} // namespace

CUgraphExecUpdateResult may_take_over(const Payload &old, const Payload &fresh) {
    return std::visit(
        [&](const auto &before) { return compare(before, std::get<std::decay_t<decltype(before)>>(fresh)); }, old);
}

void take_over(Payload &old, const Payload &fresh) {
    auto *before = std::get_if<KernelPayload>(&old);
    if (!before) {
        old = fresh;
        return;
    }
    LaunchAttributes attributes = before->attributes; // an update does not carry them
    old = fresh;
    std::get<KernelPayload>(old).attributes = attributes;
}

} // namespace sim

using namespace sim;

CUresult sim::cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                                CUgraphExecUpdateResult *updateResult_out) {
    Verdict verdict;
    CUresult result = update(hGraphExec, hGraph, &verdict);
    if (result != CUDA_SUCCESS && verdict.result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
        verdict.result = CU_GRAPH_EXEC_UPDATE_ERROR;
    if (hErrorNode_out) *hErrorNode_out = verdict.node;
    if (updateResult_out) *updateResult_out = verdict.result;
    return result;
}

CUresult sim::cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo) {
    Verdict verdict;
    CUresult result = update(hGraphExec, hGraph, &verdict);
    if (result != CUDA_SUCCESS && verdict.result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
        verdict.result = CU_GRAPH_EXEC_UPDATE_ERROR;
    if (resultInfo) *resultInfo = {verdict.result, verdict.node, verdict.from};
    return result;
}

CUresult sim::cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                             const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    KernelPayload fresh;
    SIM_TRY(kernel_payload(*nodeParams, &fresh));
    return set_kernel(hGraphExec, hNode, std::move(fresh));
}

CUresult sim::cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    KernelPayload fresh;
    SIM_TRY(kernel_payload(*nodeParams, &fresh));
    return set_kernel(hGraphExec, hNode, std::move(fresh));
}

CUresult sim::cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams,
                                             CUcontext ctx) {
    if (!copyParams) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(context_or_current(&ctx));
    return set_checked(hGraphExec, hNode, MemcpyPayload{*copyParams, ctx});
}

CUresult sim::cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                             const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    if (!memsetParams) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(context_or_current(&ctx));
    return set_checked(hGraphExec, hNode, MemsetPayload{*memsetParams, ctx});
}

CUresult sim::cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_HOST_NODE_PARAMS *nodeParams) {
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    return set_checked(hGraphExec, hNode, HostPayload{*nodeParams});
}

CUresult sim::cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph) {
    Exec *exec = nullptr;
    Node *twin = nullptr;
    SIM_TRY(find_twin(hGraphExec, hNode, &exec, &twin));
    auto *old = std::get_if<ChildPayload>(&twin->payload);
    Graph *graph = nullptr;
    SIM_TRY(find_graph(childGraph, &graph));
    if (!old || compare_graphs(*old->graph, *graph).result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < graph->nodes.size(); ++index)
        take_over(old->graph->nodes[index]->payload, graph->nodes[index]->payload);
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
    return set_event<EventRecordPayload>(hGraphExec, hNode, event);
}

CUresult sim::cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
    return set_event<EventWaitPayload>(hGraphExec, hNode, event);
}

CUresult sim::cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams) {
    Exec *exec = nullptr;
    Node *twin = nullptr;
    SIM_TRY(find_twin(hGraphExec, hNode, &exec, &twin));
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    Payload fresh;
    SIM_TRY(changed_payload(*nodeParams, twin->payload, &fresh));
    SIM_TRY(check_work(fresh));
    if (may_take_over(twin->payload, fresh) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    take_over(twin->payload, fresh);
    return CUDA_SUCCESS;
}
