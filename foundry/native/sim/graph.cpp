// Graphs as such: nodes, edges, clones, order.
#include "graph.h"

#include "backing.h"
#include "regions.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace sim {

GraphRegistry &graph_registry() {
    static auto *registry = new GraphRegistry;
    return *registry;
}

CUgraphNodeType type_of(const Payload &payload) {
    constexpr CUgraphNodeType types[] = {
        CU_GRAPH_NODE_TYPE_KERNEL,     CU_GRAPH_NODE_TYPE_MEMCPY,       CU_GRAPH_NODE_TYPE_MEMSET,
        CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
        CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        CU_GRAPH_NODE_TYPE_MEM_FREE,   CU_GRAPH_NODE_TYPE_CONDITIONAL};
    static_assert(std::size(types) == std::variant_size_v<Payload>);
    return types[payload.index()];
}

GraphMemory::~GraphMemory() {
    if (!address) return;
    remove_region(address);
    give_back_backing(*find_device(device), address, size);
}

std::shared_ptr<Graph> make_graph() {
    auto graph = std::make_shared<Graph>();
    graph_registry().graphs.add(graph);
    return graph;
}

void forget_graph(Graph &graph) {
    for (const std::shared_ptr<Node> &node : graph.nodes) {
        graph_registry().nodes.remove(node->handle);
        if (auto *child = std::get_if<ChildPayload>(&node->payload)) forget_graph(*child->graph);
        if (auto *conditional = std::get_if<ConditionalPayload>(&node->payload))
            for (const std::shared_ptr<Graph> &body : conditional->bodies) forget_graph(*body);
    }
    graph_registry().graphs.remove(graph.handle);
}

bool plain(const CUgraphEdgeData &data) {
    const CUgraphEdgeData zero = {};
    return std::memcmp(&data, &zero, sizeof data) == 0;
}

bool linked(const Node &from, const Node &to) {
    return std::any_of(to.dependencies.begin(), to.dependencies.end(),
                       [&](const Link &link) { return link.node == &from; });
}

void link(Node &from, Node &to, const CUgraphEdgeData &data) {
    to.dependencies.push_back({&from, data});
    from.dependents.push_back({&to, data});
}

CUresult check_edge(const Node &from, const Node &to, const CUgraphEdgeData &data) {
    for (unsigned char byte : data.reserved)
        if (byte) return CUDA_ERROR_INVALID_VALUE;
    if (data.type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC || data.to_port != 0) return CUDA_ERROR_INVALID_VALUE;
    bool from_kernel = std::holds_alternative<KernelPayload>(from.payload);
    bool to_kernel = std::holds_alternative<KernelPayload>(to.payload);
    if (data.from_port > (from_kernel ? CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER : 0)) return CUDA_ERROR_INVALID_VALUE;
    if (data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && (!from_kernel || !to_kernel || data.from_port == 0))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult find_links(Graph &graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, std::size_t count,
                    std::vector<Link> *links) {
    if (count && !nodes) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < count; ++index) {
        Node *node = graph_registry().nodes.find(nodes[index]);
        if (!node || node->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
        for (const Link &known : *links)
            if (known.node == node) return CUDA_ERROR_INVALID_VALUE;
        links->push_back({node, data ? data[index] : CUgraphEdgeData{}});
    }
    return CUDA_SUCCESS;
}

CUresult add_node(Graph &graph, Payload payload, const std::vector<Link> &dependencies, CUgraphNode *handle) {
    auto node = std::make_shared<Node>();
    node->graph = &graph;
    node->payload = std::move(payload);
    for (const Link &dependency : dependencies) SIM_TRY(check_edge(*dependency.node, *node, dependency.data));
    *handle = graph_registry().nodes.add(node);
    graph.nodes.push_back(node);
    for (const Link &dependency : dependencies) link(*dependency.node, *node, dependency.data);
    return CUDA_SUCCESS;
}

std::shared_ptr<Graph> clone_graph(const Graph &graph) {
    std::shared_ptr<Graph> copy = make_graph();
    copy->origin = graph.handle;
    std::unordered_map<const Node *, Node *> copies;
    for (const std::shared_ptr<Node> &node : graph.nodes) {
        auto twin = std::make_shared<Node>();
        twin->graph = copy.get();
        twin->payload = node->payload;
        twin->original = node->handle;
        if (auto *child = std::get_if<ChildPayload>(&twin->payload)) {
            child->graph = clone_graph(*child->graph);
            child->graph->owned = true;
        }
        if (auto *conditional = std::get_if<ConditionalPayload>(&twin->payload))
            for (std::size_t index = 0; index < conditional->bodies.size(); ++index) {
                conditional->bodies[index] = clone_graph(*conditional->bodies[index]);
                conditional->bodies[index]->owned = true;
                conditional->handles[index] = conditional->bodies[index]->handle;
            }
        graph_registry().nodes.add(twin);
        copies[node.get()] = twin.get();
        copy->nodes.push_back(twin);
    }
    for (const std::shared_ptr<Node> &node : graph.nodes)
        for (const Link &dependency : node->dependencies)
            link(*copies[dependency.node], *copies[node.get()], dependency.data);
    for (auto [object, count] : graph.user_objects) {
        copy->user_objects[object] += count;
        if (UserObject *known = graph_registry().user_objects.find(object)) known->references += count;
    }
    return copy;
}

bool order_nodes(const Graph &graph, std::vector<Node *> *order) {
    std::unordered_map<const Node *, std::size_t> waiting;
    std::vector<Node *> ready;
    for (const std::shared_ptr<Node> &node : graph.nodes) {
        waiting[node.get()] = node->dependencies.size();
        if (node->dependencies.empty()) ready.push_back(node.get());
    }
    while (!ready.empty()) {
        // Any of them may run next on a device; a missing edge must not be hidden by the order of creation.
        std::size_t pick = random_number() % ready.size();
        Node *node = ready[pick];
        ready[pick] = ready.back();
        ready.pop_back();
        order->push_back(node);
        for (const Link &dependent : node->dependents)
            if (--waiting[dependent.node] == 0) ready.push_back(dependent.node);
    }
    return order->size() == graph.nodes.size();
}

CUresult find_graph(CUgraph handle, Graph **graph) {
    *graph = graph_registry().graphs.find(handle);
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult find_node(CUgraphNode handle, Node **node) {
    *node = graph_registry().nodes.find(handle);
    return *node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

} // namespace sim
