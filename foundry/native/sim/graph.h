// Graphs: nodes with what they do, and edges with their data.
#pragma once

#include "devices.h"
#include "kernels.h"

#include <array>
#include <variant>

namespace sim {

struct Graph;
struct Event;

// The launch attributes that a kernel node keeps.
class LaunchAttributes {
  public:
    LaunchAttributes();
    static bool kept(CUlaunchAttributeID id);
    CUresult set(CUlaunchAttributeID id, const CUlaunchAttributeValue &value);
    CUresult get(CUlaunchAttributeID id, CUlaunchAttributeValue *value) const;
    const CUlaunchAttributeValue &value(CUlaunchAttributeID id) const { return values_[static_cast<std::size_t>(id)]; }
    void cluster(unsigned shape[3]) const;
    bool cooperative() const { return value(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative != 0; }

  private:
    std::array<CUlaunchAttributeValue, 16> values_;
};

struct KernelPayload {
    std::shared_ptr<Function> function;
    unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    unsigned shared_bytes = 0;
    std::vector<unsigned char> parameters; // as the kernel's layout says
    bool through_extra = false;            // given as one buffer: read back as one, too
    LaunchAttributes attributes;
    // What the getters hand out; good until the node changes.
    mutable std::vector<void *> pointers;
    mutable std::array<void *, 5> extra = {};
    mutable std::size_t extra_size = 0;
};

struct MemcpyPayload {
    CUDA_MEMCPY3D copy = {};
    CUcontext context = nullptr;
};

struct MemsetPayload {
    CUDA_MEMSET_NODE_PARAMS fill = {};
    CUcontext context = nullptr;
};

struct HostPayload {
    CUDA_HOST_NODE_PARAMS call = {};
};

struct ChildPayload {
    std::shared_ptr<Graph> graph;
};

struct EmptyPayload {};

struct EventWaitPayload {
    std::shared_ptr<Event> event;
};

struct EventRecordPayload {
    std::shared_ptr<Event> event;
};

// Addresses that belong to a graph; memory is behind them between a launch's allocation and its free.
struct GraphMemory {
    std::uint64_t address = 0, size = 0;
    int device = 0;
    bool live = false; // allocated by a launch and not yet freed
    GraphMemory() = default;
    GraphMemory(const GraphMemory &) = delete;
    GraphMemory &operator=(const GraphMemory &) = delete;
    ~GraphMemory();
};

struct MemAllocPayload {
    CUDA_MEM_ALLOC_NODE_PARAMS allocation = {};
    std::vector<CUmemAccessDesc> access;
    std::shared_ptr<GraphMemory> memory;
};

struct MemFreePayload {
    CUdeviceptr address = 0;
};

struct ConditionalPayload {
    CUDA_CONDITIONAL_NODE_PARAMS condition = {};
    unsigned default_value = 0;
    std::vector<std::shared_ptr<Graph>> bodies;
    std::vector<CUgraph> handles;
};

// In the order of CUgraphNodeType, with the kinds that are not simulated left out.
using Payload = std::variant<KernelPayload, MemcpyPayload, MemsetPayload, HostPayload, ChildPayload, EmptyPayload,
                             EventWaitPayload, EventRecordPayload, MemAllocPayload, MemFreePayload, ConditionalPayload>;
CUgraphNodeType type_of(const Payload &payload);

struct Node;

struct Link {
    Node *node = nullptr;
    CUgraphEdgeData data = {};
};

struct Node {
    CUgraphNode handle = nullptr;
    Graph *graph = nullptr;
    Payload payload;
    CUgraphNode original = nullptr; // in the graph that this one's graph was cloned from
    std::vector<Link> dependencies, dependents;
};

struct UserObject {
    CUuserObject handle = nullptr;
    void *pointer = nullptr;
    CUhostFn destroy = nullptr;
    std::uint64_t references = 0;
};

struct Graph {
    CUgraph handle = nullptr;
    CUgraph origin = nullptr;                 // what it was cloned from
    bool owned = false;                       // a child or a body: the program may not destroy it
    std::vector<std::shared_ptr<Node>> nodes; // in the order of their making
    std::map<CUuserObject, std::uint64_t> user_objects;
    Graph() = default;
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;
    ~Graph();
};

struct GraphRegistry {
    Table<CUgraph, Graph> graphs;
    Table<CUgraphNode, Node> nodes;
    Table<CUuserObject, UserObject> user_objects;
};
GraphRegistry &graph_registry();

std::shared_ptr<Graph> make_graph();
void forget_graph(Graph &graph); // its handles, and those of all in it, name nothing any more

// Adds a node; dependencies must be distinct nodes of the graph, edges valid for their kinds.
CUresult add_node(Graph &graph, Payload payload, const std::vector<Link> &dependencies, CUgraphNode *handle);
CUresult check_edge(const Node &from, const Node &to, const CUgraphEdgeData &data);
void link(Node &from, Node &to, const CUgraphEdgeData &data);
bool linked(const Node &from, const Node &to);
bool plain(const CUgraphEdgeData &data);
CUresult find_links(Graph &graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, std::size_t count,
                    std::vector<Link> *links);

// A deep copy with handles of its own. Nodes remember whose copy they are.
std::shared_ptr<Graph> clone_graph(const Graph &graph);
// Topological order, one of the possible ones; false if there is a cycle.
bool order_nodes(const Graph &graph, std::vector<Node *> *order);

CUresult find_graph(CUgraph handle, Graph **graph);
CUresult find_node(CUgraphNode handle, Node **node);
template <class Kind> CUresult find_payload(CUgraphNode handle, Kind **payload) {
    Node *node = nullptr;
    SIM_TRY(find_node(handle, &node));
    *payload = std::get_if<Kind>(&node->payload);
    return *payload ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

} // namespace sim
