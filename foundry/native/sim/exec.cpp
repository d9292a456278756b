// Instantiation and launch.
#include "exec.h"

#include "capture.h"
#include "graph_memory.h"

#include <cstdio>

namespace sim {
namespace {

constexpr unsigned long long known_flags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

struct Refusal {
    CUgraphNode node = nullptr;
    CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_SUCCESS;
};

CUresult check_all(const Graph &graph, Refusal *refusal) {
    std::vector<Node *> order;
    if (!order_nodes(graph, &order)) {
        refusal->reason = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const std::shared_ptr<Node> &node : graph.nodes) {
        CUresult result = check_work(node->payload);
        if (result != CUDA_SUCCESS) {
            refusal->node = node->handle;
            refusal->reason = CUDA_GRAPH_INSTANTIATE_ERROR;
            return result;
        }
        if (auto *child = std::get_if<ChildPayload>(&node->payload)) SIM_TRY(check_all(*child->graph, refusal));
        if (auto *conditional = std::get_if<ConditionalPayload>(&node->payload)) {
            // No device code can set a condition here, so a loop that is entered would not end.
            if (conditional->condition.type == CU_GRAPH_COND_TYPE_WHILE && conditional->default_value) {
                refusal->node = node->handle;
                refusal->reason = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
                return CUDA_ERROR_NOT_SUPPORTED;
            }
            for (const std::shared_ptr<Graph> &body : conditional->bodies) SIM_TRY(check_all(*body, refusal));
        }
    }
    return CUDA_SUCCESS;
}

void map_twins(const Graph &graph, Exec &exec) {
    for (const std::shared_ptr<Node> &node : graph.nodes) {
        exec.twins[node->original] = node.get();
        if (auto *child = std::get_if<ChildPayload>(&node->payload)) map_twins(*child->graph, exec);
    }
}

CUresult instantiate(CUgraphExec *handle, CUgraph graph_handle, unsigned long long flags, Refusal *refusal) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Graph *graph = nullptr;
    SIM_TRY(find_graph(graph_handle, &graph));
    if (!handle || (flags & ~known_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(check_all(*graph, refusal));
    auto exec = std::make_shared<Exec>();
    exec->flags = flags;
    exec->graph = clone_graph(*graph);
    exec->graph->owned = true;
    map_twins(*exec->graph, *exec);
    order_nodes(*exec->graph, &exec->order);
    *handle = execs().add(exec);
    return CUDA_SUCCESS;
}

CUresult instantiate_logged(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *buffer, std::size_t size) {
    Refusal refusal;
    CUresult result = instantiate(exec, graph, 0, &refusal);
    if (node) *node = refusal.node;
    if (buffer && size)
        std::snprintf(buffer, size, "%s", result == CUDA_SUCCESS ? "" : "the graph cannot be instantiated");
    return result;
}

bool enabled(const Exec &exec, const Node *node) {
    return !exec.disabled.contains(node);
}

CUresult run_graph(const Exec &exec, const Graph &graph);

// What a conditional node runs, by its default value; nullptr for none, and for other nodes.
const Graph *chosen_body(const Node &node) {
    auto *conditional = std::get_if<ConditionalPayload>(&node.payload);
    if (!conditional || conditional->condition.type == CU_GRAPH_COND_TYPE_WHILE) return nullptr;
    unsigned value = conditional->default_value, chosen = value;
    if (conditional->condition.type == CU_GRAPH_COND_TYPE_IF) chosen = value ? 0 : 1;
    return chosen < conditional->bodies.size() ? conditional->bodies[chosen].get() : nullptr;
}

CUresult run_nodes(const Exec &exec, const std::vector<Node *> &order) {
    for (const Node *node : order) {
        if (!enabled(exec, node)) continue;
        if (auto *child = std::get_if<ChildPayload>(&node->payload))
            SIM_TRY(run_graph(exec, *child->graph));
        else if (const Graph *body = chosen_body(*node))
            SIM_TRY(run_graph(exec, *body));
        else
            SIM_TRY(do_work(node->payload));
    }
    return CUDA_SUCCESS;
}

CUresult run_graph(const Exec &exec, const Graph &graph) {
    std::vector<Node *> order;
    order_nodes(graph, &order);
    return run_nodes(exec, order);
}

CUresult prepare_memory(const Exec &exec) {
    for (const std::shared_ptr<Node> &node : exec.graph->nodes)
        if (auto *allocation = std::get_if<MemAllocPayload>(&node->payload); allocation && allocation->memory->live) {
            if (!(exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)) return CUDA_ERROR_INVALID_VALUE;
            allocation->memory->live = false;
        }
    return CUDA_SUCCESS;
}

} // namespace

Table<CUgraphExec, Exec> &execs() {
    static auto *all = new Table<CUgraphExec, Exec>;
    return *all;
}

Exec::~Exec() {
    if (graph) forget_graph(*graph);
}

CUresult find_exec(CUgraphExec handle, Exec **exec) {
    *exec = execs().find(handle);
    return *exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult find_twin(CUgraphExec handle, CUgraphNode node, Exec **exec, Node **twin) {
    SIM_TRY(find_exec(handle, exec));
    auto found = (*exec)->twins.find(node);
    if (found == (*exec)->twins.end()) return CUDA_ERROR_INVALID_VALUE;
    *twin = found->second;
    return CUDA_SUCCESS;
}

} // namespace sim

using namespace sim;

CUresult sim::cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                                 size_t bufferSize) {
    return instantiate_logged(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult sim::cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                                    size_t bufferSize) {
    return instantiate_logged(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult sim::cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags) {
    Refusal refusal;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
        return CUDA_ERROR_INVALID_VALUE; // needs the stream that only the call with parameters takes
    return instantiate(phGraphExec, hGraph, flags, &refusal);
}

CUresult sim::cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    if (!instantiateParams) return CUDA_ERROR_INVALID_VALUE;
    Refusal refusal;
    CUresult result = instantiate(phGraphExec, hGraph, instantiateParams->flags, &refusal);
    if (result != CUDA_SUCCESS && refusal.reason == CUDA_GRAPH_INSTANTIATE_SUCCESS)
        refusal.reason = CUDA_GRAPH_INSTANTIATE_ERROR;
    instantiateParams->hErrNode_out = refusal.node;
    instantiateParams->result_out = refusal.reason;
    return result;
}

CUresult sim::cuGraphExecDestroy(CUgraphExec hGraphExec) {
    return execs().remove(hGraphExec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Drivers of CUDA 13 take the use of node priorities, but do not tell it.
constexpr cuuint64_t told_flags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;

CUresult sim::cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) {
    Exec *exec = nullptr;
    SIM_TRY(find_exec(hGraphExec, &exec));
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags & told_flags;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphUpload(CUgraphExec hGraph, CUstream hStream) {
    Exec *exec = nullptr;
    SIM_TRY(find_exec(hGraph, &exec));
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    SIM_TRY(refuse_implicit(*stream));
    return refuse_on_capturing(*stream);
}

CUresult sim::cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
    std::shared_ptr<Exec> exec = execs().share(hGraph); // a host node may destroy it under us
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    SIM_TRY(refuse_implicit(*stream));
    if (stream->capture) {
        if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        std::shared_ptr<Graph> child = clone_graph(*exec->graph);
        child->owned = true;
        return submit(*stream, ChildPayload{child});
    }
    SIM_TRY(prepare_memory(*exec));
    return run_nodes(*exec, exec->order);
}

CUresult sim::cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
    Exec *exec = nullptr;
    Node *twin = nullptr;
    SIM_TRY(find_twin(hGraphExec, hNode, &exec, &twin));
    CUgraphNodeType type = type_of(twin->payload);
    if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY && type != CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_ERROR_INVALID_VALUE;
    if (isEnabled)
        exec->disabled.erase(twin);
    else
        exec->disabled.insert(twin);
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled) {
    Exec *exec = nullptr;
    Node *twin = nullptr;
    SIM_TRY(find_twin(hGraphExec, hNode, &exec, &twin));
    if (!isEnabled) return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = enabled(*exec, twin);
    return CUDA_SUCCESS;
}
