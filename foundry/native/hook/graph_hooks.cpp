// Executable graphs: recorded when they are made, noted when they change, counted when they are launched.
#include "../table/call.h"
#include "contents.h"
#include "counters.h"
#include "exec_table.h"
#include "graph_record.h"
#include "images.h"
#include "moments.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

void instantiated(CUresult result, const CUgraphExec *exec, CUgraph graph, uint64_t flags) {
    if (result != CUDA_SUCCESS || !armed() || !exec || !*exec) return;
    count(counters.graphs_instantiated);
    moment_first(Moment::first_graph);
    moment_last(Moment::last_graph);
    if (!exec_add(*exec)) {
        // Its updates would go unnoticed.
        finding_once("too-many-graphs",
                     "more executable graphs are alive than the hook follows; more are not recorded");
        return;
    }
    contents_take();
    record_graph(graph, *exec, flags);
}

// Only the first change of an exec is news: from then on it is not what was recorded.
CUresult changed(CUresult result, CUgraphExec exec, const char *how) {
    if (result != CUDA_SUCCESS || !armed()) return result;
    count(counters.graph_updates);
    if (exec_first_change(exec)) Frame(FOUNDRY_EVENT_EXEC_CHANGED).handle(exec).str(how).write();
    return result;
}

void launched(CUgraphExec exec) {
    count(counters.graph_launches);
    // What a scratch phase launches is no use that a restore should be ready for.
    if (!scratch_depth() && exec_first_launch(exec)) Frame(FOUNDRY_EVENT_EXEC_LAUNCHED).handle(exec).write();
}

} // namespace
} // namespace foundry

using namespace foundry;

extern "C" {

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                            size_t bufferSize) {
    CUresult result = DRIVER(cuGraphInstantiate, phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
    instantiated(result, phGraphExec, hGraph, 0);
    return result;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                               size_t bufferSize) {
    CUresult result = DRIVER(cuGraphInstantiate_v2, phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
    instantiated(result, phGraphExec, hGraph, 0);
    return result;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags) {
    CUresult result = DRIVER(cuGraphInstantiateWithFlags, phGraphExec, hGraph, flags);
    instantiated(result, phGraphExec, hGraph, flags);
    return result;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    CUresult result = DRIVER(cuGraphInstantiateWithParams, phGraphExec, hGraph, instantiateParams);
    instantiated(result, phGraphExec, hGraph, instantiateParams ? instantiateParams->flags : 0);
    return result;
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    CUresult result = DRIVER(cuGraphInstantiateWithParams_ptsz, phGraphExec, hGraph, instantiateParams);
    instantiated(result, phGraphExec, hGraph, instantiateParams ? instantiateParams->flags : 0);
    return result;
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
    // Before the driver may give the handle to another thread.
    if (exec_remove(hGraphExec)) Frame(FOUNDRY_EVENT_EXEC_GONE).handle(hGraphExec).write();
    return DRIVER(cuGraphExecDestroy, hGraphExec);
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
    CUresult result = DRIVER(cuGraphLaunch, hGraph, hStream);
    if (result == CUDA_SUCCESS) launched(hGraph);
    return result;
}

CUresult cuGraphLaunch_ptsz(CUgraphExec hGraph, CUstream hStream) {
    CUresult result = DRIVER(cuGraphLaunch_ptsz, hGraph, hStream);
    if (result == CUDA_SUCCESS) launched(hGraph);
    return result;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                           CUgraphExecUpdateResult *updateResult_out) {
    return changed(DRIVER(cuGraphExecUpdate, hGraphExec, hGraph, hErrorNode_out, updateResult_out), hGraphExec,
                   "updated");
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo) {
    return changed(DRIVER(cuGraphExecUpdate_v2, hGraphExec, hGraph, resultInfo), hGraphExec, "updated");
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    return changed(DRIVER(cuGraphExecKernelNodeSetParams, hGraphExec, hNode, nodeParams), hGraphExec, "kernel node");
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    return changed(DRIVER(cuGraphExecKernelNodeSetParams_v2, hGraphExec, hNode, nodeParams), hGraphExec, "kernel node");
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams,
                                        CUcontext ctx) {
    return changed(DRIVER(cuGraphExecMemcpyNodeSetParams, hGraphExec, hNode, copyParams, ctx), hGraphExec,
                   "memcpy node");
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    return changed(DRIVER(cuGraphExecMemsetNodeSetParams, hGraphExec, hNode, memsetParams, ctx), hGraphExec,
                   "memset node");
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS *nodeParams) {
    return changed(DRIVER(cuGraphExecHostNodeSetParams, hGraphExec, hNode, nodeParams), hGraphExec, "host node");
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph) {
    return changed(DRIVER(cuGraphExecChildGraphNodeSetParams, hGraphExec, hNode, childGraph), hGraphExec,
                   "child graph");
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
    return changed(DRIVER(cuGraphExecEventRecordNodeSetEvent, hGraphExec, hNode, event), hGraphExec, "event node");
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
    return changed(DRIVER(cuGraphExecEventWaitNodeSetEvent, hGraphExec, hNode, event), hGraphExec, "event node");
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams) {
    return changed(DRIVER(cuGraphExecNodeSetParams, hGraphExec, hNode, nodeParams), hGraphExec, "node");
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
    return changed(DRIVER(cuGraphNodeSetEnabled, hGraphExec, hNode, isEnabled), hGraphExec, "node enabled or disabled");
}

} // extern "C"
