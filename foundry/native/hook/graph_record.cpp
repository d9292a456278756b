#include "graph_record.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "../table/row.h"
#include "captures.h"
#include "counters.h"
#include "exec_table.h"
#include "graph_edges.h"
#include "graph_label.h"
#include "process.h"
#include "state.h"

namespace foundry {
namespace {

constexpr int deepest_child = 16;
// What kernel nodes have by the documents of CUDA 13.0; a newer driver is asked for all up to the last.
constexpr int documented = 13000;
constexpr uint32_t attributes_of_nodes[] = {1, 2, 4, 5, 8, 9, 10, 11, 13, 14, 16};
constexpr uint32_t last_attribute = 20;
constexpr size_t attribute_bytes = 64;
static_assert(sizeof(CUkernelNodeAttrValue) == attribute_bytes);
static_assert(sizeof(CUDA_MEMCPY3D) == 200);

class Recording {
  public:
    // `reason`: why no node can be rebuilt, "" if nothing speaks against all of them.
    Recording(Frame &frame, KernelRecorder &kernels, CUcontext context, const char *reason)
        : frame_(frame), kernels_(kernels), context_(context), whole_(reason) {}
    void body(CUgraph graph, int depth);

  private:
    void node(CUgraphNode node, const char *reason, int depth);
    // Writes what follows the reason; "" or why it could not be read (then nothing of it stays).
    const char *kernel(CUgraphNode node);
    const char *memset_node(CUgraphNode node);
    const char *memcpy_node(CUgraphNode node);
    const char *child(CUgraphNode node, int depth);
    const char *event(CUgraphNode node, bool record);
    const char *attributes(CUgraphNode node);
    bool parameters(const KernelRecord &kernel, void **values, void **extra);
    const char *failed(const char *what, CUresult result);

    Frame &frame_;
    KernelRecorder &kernels_;
    CUcontext context_;
    const char *whole_;
    char reason_[192];
    std::vector<unsigned char> buffer_;
};

const char *Recording::failed(const char *what, CUresult result) {
    snprintf(reason_, sizeof reason_, "%s could not be read (CUresult %d)", what, result);
    return reason_;
}

bool Recording::parameters(const KernelRecord &kernel, void **values, void **extra) {
    buffer_.assign(kernel.parameter_bytes, 0);
    if (kernel.parameters.empty()) return true;
    if (values) {
        for (size_t index = 0; index < kernel.parameters.size(); ++index) {
            auto [offset, size] = kernel.parameters[index];
            if (!values[index]) return false;
            memcpy(buffer_.data() + offset, values[index], size);
        }
        return true;
    }
    const void *packed = nullptr;
    size_t size = 0;
    for (int index = 0; extra && index < 16 && extra[index] != CU_LAUNCH_PARAM_END; index += 2) {
        if (extra[index] == CU_LAUNCH_PARAM_BUFFER_POINTER) packed = extra[index + 1];
        if (extra[index] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[index + 1])
            size = *static_cast<size_t *>(extra[index + 1]);
    }
    if (!packed || size < kernel.parameter_bytes) return false;
    memcpy(buffer_.data(), packed, buffer_.size());
    return true;
}

const char *Recording::attributes(CUgraphNode node) {
    size_t at = frame_.size();
    uint32_t count = 0;
    frame_.u32(0);
    if (!real.cuGraphKernelNodeGetAttribute) return "";
    for (uint32_t id = 1; id <= last_attribute; ++id) {
        if (driver_version() <= documented &&
            !std::binary_search(std::begin(attributes_of_nodes), std::end(attributes_of_nodes), id))
            continue;
        unsigned char value[attribute_bytes] = {};
        auto *room = reinterpret_cast<CUkernelNodeAttrValue *>(value);
        CUresult result = real.cuGraphKernelNodeGetAttribute(node, static_cast<CUkernelNodeAttrID>(id), room);
        // What kernel nodes of this driver do not have.
        if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED) continue;
        if (result != CUDA_SUCCESS) return failed("launch attribute", result);
        // The program's kernels know the node by a handle, and a launch is not what the node says.
        if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE && room->deviceUpdatableKernelNode.deviceUpdatable)
            return "may be changed by kernels while it runs (device-updatable)";
        size_t size = attribute_bytes;
        while (size && !value[size - 1]) --size;
        frame_.u32(id).bytes(value, size);
        ++count;
    }
    frame_.patch_u32(at, count);
    return "";
}

const char *Recording::kernel(CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS now{};
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (real.cuGraphKernelNodeGetParams_v2) {
        result = real.cuGraphKernelNodeGetParams_v2(node, &now);
    } else if (real.cuGraphKernelNodeGetParams) {
        CUDA_KERNEL_NODE_PARAMS_v1 old{};
        result = real.cuGraphKernelNodeGetParams(node, &old);
        memcpy(static_cast<void *>(&now), &old, sizeof old);
    }
    if (result != CUDA_SUCCESS) return failed("kernel node", result);
    const KernelRecord &kernel = kernels_.record(now.kern, now.func);
    if (!kernel.reason.empty()) return kernel.reason.c_str();
    if (!parameters(kernel, now.kernelParams, now.extra))
        return "the driver gives no values for the kernel's parameters";
    frame_.str("")
        .u64(kernel.handle)
        .u32(now.gridDimX)
        .u32(now.gridDimY)
        .u32(now.gridDimZ)
        .u32(now.blockDimX)
        .u32(now.blockDimY)
        .u32(now.blockDimZ)
        .u32(now.sharedMemBytes)
        .handle(now.ctx ? now.ctx : context_)
        .bytes(buffer_.data(), buffer_.size());
    return attributes(node);
}

const char *Recording::memset_node(CUgraphNode node) {
    CUDA_MEMSET_NODE_PARAMS set{};
    CUresult result =
        real.cuGraphMemsetNodeGetParams ? real.cuGraphMemsetNodeGetParams(node, &set) : CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS) return failed("memset node", result);
    frame_.str("")
        .u64(set.dst)
        .u64(set.pitch)
        .u32(set.value)
        .u32(set.elementSize)
        .u64(set.width)
        .u64(set.height)
        .handle(context_);
    return "";
}

const char *Recording::memcpy_node(CUgraphNode node) {
    CUDA_MEMCPY3D copy{};
    CUresult result =
        real.cuGraphMemcpyNodeGetParams ? real.cuGraphMemcpyNodeGetParams(node, &copy) : CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS) return failed("memcpy node", result);
    if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return "copies from or to a CUDA array";
    frame_.str("").bytes(&copy, sizeof copy).handle(context_);
    return "";
}

const char *Recording::child(CUgraphNode node, int depth) {
    CUgraph graph = nullptr;
    CUresult result = real.cuGraphChildGraphNodeGetGraph ? real.cuGraphChildGraphNodeGetGraph(node, &graph)
                                                         : CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS) return failed("child graph", result);
    if (depth + 1 >= deepest_child) return "child graphs are nested too deep";
    frame_.str("");
    body(graph, depth + 1);
    return "";
}

const char *Recording::event(CUgraphNode node, bool record) {
    auto *get = record ? real.cuGraphEventRecordNodeGetEvent : real.cuGraphEventWaitNodeGetEvent;
    CUevent event = nullptr;
    CUresult result = get ? get(node, &event) : CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS) return failed("event node", result);
    frame_.str("").handle(event);
    return "";
}

// Why nodes of a type cannot be rebuilt, "" for those that can.
const char *refusal(CUgraphNodeType type) {
    switch (static_cast<int>(type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return "";
    case CU_GRAPH_NODE_TYPE_HOST:
        return "calls a host function";
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        return "signals an external semaphore";
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        return "waits for an external semaphore";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return "allocates memory within the graph";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return "frees memory within the graph";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return "batch of memory operations";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return "conditional node";
    default:
        return "unknown kind of node";
    }
}

void Recording::node(CUgraphNode node, const char *reason, int depth) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUresult result = real.cuGraphNodeGetType ? real.cuGraphNodeGetType(node, &type) : CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS) reason = failed("type of a node", result);
    frame_.u32(static_cast<uint32_t>(type));
    if (!*reason) reason = refusal(type);
    size_t at = frame_.size();
    if (!*reason) switch (static_cast<int>(type)) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            reason = kernel(node);
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET:
            reason = memset_node(node);
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            reason = memcpy_node(node);
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            reason = child(node, depth);
            break;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            reason = event(node, false);
            break;
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            reason = event(node, true);
            break;
        default:
            frame_.str("");
            break;
        }
    if (!*reason) return;
    frame_.truncate(at);
    frame_.str(reason);
}

CUresult read_nodes(CUgraph graph, std::vector<CUgraphNode> *nodes) {
    size_t count = 0;
    if (!real.cuGraphGetNodes) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = real.cuGraphGetNodes(graph, nullptr, &count);
    if (result != CUDA_SUCCESS || !count) return result;
    nodes->resize(count);
    result = real.cuGraphGetNodes(graph, nodes->data(), &count);
    nodes->resize(std::min(count, nodes->size()));
    return result;
}

void Recording::body(CUgraph graph, int depth) {
    std::vector<CUgraphNode> nodes;
    std::vector<Edge> edges;
    CUresult result = read_nodes(graph, &nodes);
    if (result != CUDA_SUCCESS) {
        frame_.u32(1).u32(CU_GRAPH_NODE_TYPE_EMPTY).str(failed("nodes of the graph", result)).u32(0);
        return;
    }
    // Without its edges no node can stand where it stood; the nodes then carry the reason.
    result = read_edges(graph, nodes, &edges);
    frame_.u32(static_cast<uint32_t>(nodes.size()));
    for (CUgraphNode entry : nodes)
        node(entry, result == CUDA_SUCCESS ? whole_ : failed("edges of the graph", result), depth);
    frame_.u32(static_cast<uint32_t>(edges.size()));
    for (const Edge &edge : edges) frame_.u32(edge.from).u32(edge.to).raw(&edge.data, sizeof edge.data);
}

constexpr CUdevice no_device = -1;

CUdevice current_device() {
    CUdevice device;
    return real.cuCtxGetDevice && real.cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : no_device;
}

} // namespace

GraphRecord::GraphRecord(CUgraph graph, CUgraphExec exec, uint64_t flags, const char *set, const char *key)
    : device_(current_device()), frame_(FOUNDRY_EVENT_GRAPH), kernels_(device_) {
    CUcontext context = nullptr;
    const bool known = real.cuCtxGetCurrent && real.cuCtxGetCurrent(&context) == CUDA_SUCCESS && device_ != no_device;
    if (device_ == no_device) device_ = 0;
    frame_.handle(graph)
        .handle(exec)
        .u64(flags)
        .u32(static_cast<uint32_t>(device_))
        .handle(context)
        .u8(captured_graph(graph))
        .str(set)
        .str(key);
    Recording(frame_, kernels_, context, known ? "" : "the driver did not tell the current device and context")
        .body(graph, 0);
}

bool GraphRecord::write() {
    kernels_.write();
    return frame_.write();
}

void record_graph(CUgraph graph, CUgraphExec exec, uint64_t flags) {
    const char *set, *key;
    graph_label_take(&set, &key);
    if (GraphRecord(graph, exec, flags, set, key).write()) count(counters.graphs_recorded);
}

void recorder_forget() {
    kernel_records_forget();
    execs_forget();
}

} // namespace foundry
