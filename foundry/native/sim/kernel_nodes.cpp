// Kernel nodes: parameters, attributes.
#include "kernel_nodes.h"

#include <algorithm>
#include <cstring>

namespace sim {
namespace {

constexpr int kept_ids[] = {1, 2, 4, 5, 8, 9, 10, 13, 14};

std::size_t value_size(int id) {
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return sizeof(CUaccessPolicyWindow);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return 3 * sizeof(unsigned);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return sizeof(CUlaunchMemSyncDomainMap);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return sizeof(int);
    default:
        return sizeof(int);
    }
}

// What a node gives for its function: by function, and by kernel where it is a library's.
CUDA_KERNEL_NODE_PARAMS describe(const KernelPayload &payload) {
    CUDA_KERNEL_NODE_PARAMS result = {};
    result.func = payload.function->handle;
    result.kern = payload.function->kernel->handle;
    result.ctx = payload.function->context;
    result.gridDimX = payload.grid[0];
    result.gridDimY = payload.grid[1];
    result.gridDimZ = payload.grid[2];
    result.blockDimX = payload.block[0];
    result.blockDimY = payload.block[1];
    result.blockDimZ = payload.block[2];
    result.sharedMemBytes = payload.shared_bytes;
    auto *bytes = const_cast<unsigned char *>(payload.parameters.data());
    if (payload.through_extra) {
        payload.extra_size = payload.parameters.size();
        payload.extra = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &payload.extra_size,
                         CU_LAUNCH_PARAM_END};
        result.extra = payload.extra.data();
        return result;
    }
    payload.pointers.clear();
    for (const ParameterPlace &place : payload.function->kernel->text.parameters)
        payload.pointers.push_back(bytes + place.offset);
    result.kernelParams = payload.pointers.empty() ? nullptr : payload.pointers.data();
    return result;
}

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1 &old) {
    CUDA_KERNEL_NODE_PARAMS result = {};
    std::memcpy(&result, &old, sizeof old); // the old one is a prefix of the new
    return result;
}

CUresult add(CUgraphNode *handle, CUgraph graph_handle, const CUgraphNode *dependencies, std::size_t count,
             const CUDA_KERNEL_NODE_PARAMS &parameters) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(graph_handle, &graph));
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Link> links;
    SIM_TRY(find_links(*graph, dependencies, nullptr, count, &links));
    KernelPayload payload;
    SIM_TRY(kernel_payload(parameters, &payload));
    SIM_TRY(check_node(payload));
    return add_node(*graph, std::move(payload), links, handle);
}

CUresult set(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS &parameters) {
    KernelPayload *payload = nullptr;
    SIM_TRY(find_payload(handle, &payload));
    KernelPayload changed;
    SIM_TRY(kernel_payload(parameters, &changed));
    changed.attributes = payload->attributes;
    SIM_TRY(check_node(changed));
    if (changed.function->context != payload->function->context) return CUDA_ERROR_INVALID_VALUE;
    *payload = std::move(changed);
    return CUDA_SUCCESS;
}

} // namespace

LaunchAttributes::LaunchAttributes() {
    for (CUlaunchAttributeValue &value : values_) std::memset(&value, 0, sizeof value);
    values_[CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE].clusterSchedulingPolicyPreference =
        CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
    values_[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP].memSyncDomainMap = {0, 1};
}

bool LaunchAttributes::kept(CUlaunchAttributeID id) {
    return std::find(std::begin(kept_ids), std::end(kept_ids), static_cast<int>(id)) != std::end(kept_ids);
}

CUresult LaunchAttributes::set(CUlaunchAttributeID id, const CUlaunchAttributeValue &value) {
    if (!kept(id)) return CUDA_ERROR_INVALID_VALUE;
    int number = 0;
    std::memcpy(&number, &value, sizeof number);
    switch (static_cast<int>(id)) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (number != 0 && number != 1) return CUDA_ERROR_INVALID_VALUE;
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
        bool any = value.clusterDim.x || value.clusterDim.y || value.clusterDim.z;
        bool all = value.clusterDim.x && value.clusterDim.y && value.clusterDim.z;
        if ((any && !all) || (any && levers().major < 9)) return CUDA_ERROR_INVALID_VALUE;
        break;
    }
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        if (number < 0 || number > 3) return CUDA_ERROR_INVALID_VALUE;
        break;
    default:
        break;
    }
    CUlaunchAttributeValue clean;
    std::memset(&clean, 0, sizeof clean);
    std::memcpy(&clean, &value, value_size(id));
    values_[static_cast<std::size_t>(id)] = clean;
    return CUDA_SUCCESS;
}

CUresult LaunchAttributes::get(CUlaunchAttributeID id, CUlaunchAttributeValue *value) const {
    if (!kept(id)) return CUDA_ERROR_INVALID_VALUE;
    *value = values_[static_cast<std::size_t>(id)];
    return CUDA_SUCCESS;
}

void LaunchAttributes::cluster(unsigned shape[3]) const {
    const auto &set = value(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
    shape[0] = set.x;
    shape[1] = set.y;
    shape[2] = set.z;
}

CUresult kernel_payload(const CUDA_KERNEL_NODE_PARAMS &parameters, KernelPayload *payload) {
    Context *context = nullptr;
    if (parameters.ctx) {
        context = driver().contexts.find(parameters.ctx);
        if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    } else {
        SIM_TRY(current_context(&context));
    }
    if (!parameters.func && !parameters.kern) return CUDA_ERROR_INVALID_VALUE;
    if (parameters.func)
        SIM_TRY(resolve_function(parameters.func, *context, &payload->function));
    else
        SIM_TRY(kernel_function(parameters.kern, *context, &payload->function));
    if (parameters.func && parameters.kern && payload->function->kernel->handle != parameters.kern)
        return CUDA_ERROR_INVALID_VALUE;
    payload->grid[0] = parameters.gridDimX;
    payload->grid[1] = parameters.gridDimY;
    payload->grid[2] = parameters.gridDimZ;
    payload->block[0] = parameters.blockDimX;
    payload->block[1] = parameters.blockDimY;
    payload->block[2] = parameters.blockDimZ;
    payload->shared_bytes = parameters.sharedMemBytes;
    SIM_TRY(read_parameters(*payload->function, parameters.kernelParams, parameters.extra, payload));
    payload->function->loaded = true;
    return CUDA_SUCCESS;
}

CUresult kernel_payload(const CUDA_KERNEL_NODE_PARAMS_v1 &parameters, KernelPayload *payload) {
    return kernel_payload(widen(parameters), payload);
}

} // namespace sim

using sim::KernelPayload;

CUresult sim::cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    return nodeParams ? add(phGraphNode, hGraph, dependencies, numDependencies, widen(*nodeParams))
                      : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                      size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    return nodeParams ? add(phGraphNode, hGraph, dependencies, numDependencies, *nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    KernelPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS whole = describe(*payload);
    std::memcpy(nodeParams, &whole, sizeof *nodeParams);
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    KernelPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = describe(*payload);
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    return nodeParams ? set(hNode, widen(*nodeParams)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    return nodeParams ? set(hNode, *nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                            CUkernelNodeAttrValue *value_out) {
    KernelPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    return value_out ? payload->attributes.get(attr, value_out) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                            const CUkernelNodeAttrValue *value) {
    KernelPayload *payload = nullptr;
    SIM_TRY(find_payload(hNode, &payload));
    return value ? payload->attributes.set(attr, *value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
    KernelPayload *to = nullptr, *from = nullptr;
    SIM_TRY(find_payload(dst, &to));
    SIM_TRY(find_payload(src, &from));
    to->attributes = from->attributes;
    return CUDA_SUCCESS;
}
