/* Uses what `every_call` does not: old versions of functions, and what programs rarely need. It looks at every result
 * as that one does: at the first error it says so, gives back what it holds, and ends with 10. What a driver may well
 * refuse it only tells. In a restore it takes its graphs from the archive. argv[1] is the image. */
#define _GNU_SOURCE
#define __CUDA_API_VERSION_INTERNAL /* every function by the name of its version */
#define PROGRAM_WITHOUT_DRIVER
#include "interface.h"
#include "program.h"

#define TRY(function, ...)                                                                                             \
    do {                                                                                                               \
        if (failed(#function, function(__VA_ARGS__))) return 0;                                                        \
    } while (0)
#define MAY(function, ...) SAY("%s %d", #function, function(__VA_ARGS__))
#define DO(step)                                                                                                       \
    do {                                                                                                               \
        if (!(step)) return 0;                                                                                         \
    } while (0)
#define LEAVE(variable, function, ...)                                                                                 \
    do {                                                                                                               \
        if (variable) failed(#function, function(__VA_ARGS__));                                                        \
        variable = 0;                                                                                                  \
    } while (0)

enum { words = 8, most_execs = 8 };

static CUdevice device;
static CUcontext context, old, older;
static CUstream stream;
static CUevent first_event, second_event;
static CUdeviceptr data, other;
static CUlibrary library;
static CUmodule fat;
static CUfunction add;
static CUgraph graph, inner, inner_again;
static CUgraphExec execs[most_execs];
static int exec_count, capturing, broken, called;
static void *pinned;
static uint8_t amount = 3;
static uint32_t scale = 2;
static uint64_t elements = words;
static void *arguments_of_add[] = {&data, &amount, &scale, &elements};

static int failed(const char *function, CUresult result) {
    if (!result) return 0;
    SAY("error %s %d", function, result);
    broken = 1;
    return 1;
}

static int say(const char *what) {
    uint32_t got[words];
    TRY(cuStreamSynchronize, stream);
    TRY(cuMemcpyDtoH_v2, got, data, sizeof got);
    printf("%s", what);
    for (int index = 0; index < words; ++index) printf(" %u", got[index]);
    SAY(" called %d", called);
    return 1;
}

static int start(void) {
    TRY(cuInit, 0);
    TRY(cuDeviceGet, &device, 0);
    TRY(cuDevicePrimaryCtxSetFlags_v2, device, 0);
    TRY(cuDevicePrimaryCtxRetain, &context, device);
    TRY(cuCtxSetCurrent, context);
    TRY(cuCtxCreate_v2, &old, 0, device);
    TRY(cuCtxCreate_v3, &older, NULL, 0, 0, device);
    TRY(cuCtxSynchronize_v2, older);
    MAY(cuCtxEnablePeerAccess, old, 0);
    TRY(cuCtxSetCurrent, context);
    TRY(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    TRY(cuEventCreate, &first_event, CU_EVENT_DISABLE_TIMING);
    TRY(cuEventCreate, &second_event, CU_EVENT_DISABLE_TIMING);
    TRY(cuMemAlloc_v2, &data, 4096);
    TRY(cuMemAlloc_v2, &other, 4096);
    TRY(cuMemHostAlloc, &pinned, 4096, CU_MEMHOSTALLOC_PORTABLE);
    memset(pinned, 1, 4096);
    TRY(cuMemcpyHtoD_v2, data, pinned, 4096);
    TRY(cuMemsetD32_v2, other, 40, 1024);
    return 1;
}

static int load(const void *image) {
    CUkernel kernel;
    CUdeviceptr managed;
    size_t size;
    unsigned count;
    CUfunction all[16];
    TRY(cuLibraryLoadData, &library, image, NULL, NULL, 0, NULL, NULL, 0);
    TRY(cuLibraryGetKernel, &kernel, library, "add_constant");
    TRY(cuKernelSetCacheConfig, kernel, CU_FUNC_CACHE_PREFER_L1, device);
    TRY(cuKernelGetFunction, &add, kernel);
    TRY(cuFuncSetCacheConfig, add, CU_FUNC_CACHE_PREFER_SHARED);
    TRY(cuModuleLoadFatBinary, &fat, image);
    TRY(cuModuleGetFunctionCount, &count, fat);
    TRY(cuModuleEnumerateFunctions, all, count < 16 ? count : 16, fat);
    MAY(cuLibraryGetManaged, &managed, &size, library, "counter");
    TRY(cuLaunchCooperativeKernel, add, 1, 1, 1, 1, 1, 1, 0, stream, arguments_of_add);
    return say("cooperative");
}

/* What a restore cannot bring back, and other drivers may not have. */
static void unusual(void) {
    static const CUuuid no_table = {{1}};
    const void *table;
    CUgreenCtx green;
    CUdevResourceDesc description = NULL;
    CUmemGenericAllocationHandle multicast;
    CUmulticastObjectProp property;
    CUipcMemHandle handle;
    CUmemPoolPtrExportData pooled;
    CUmemGenericAllocationHandle physical;
    CUdeviceptr opened = 0;
    memset(&property, 0, sizeof property);
    memset(&handle, 0, sizeof handle);
    memset(&pooled, 0, sizeof pooled);
    MAY(cuGetExportTable, &table, &no_table);
    MAY(cuGreenCtxCreate, &green, description, device, 0);
    MAY(cuMulticastCreate, &multicast, &property);
    /* Memory can't be shared with oneself, nor by these flags. */
    cuIpcGetMemHandle(&handle, data);
    cuIpcOpenMemHandle_v2(&opened, handle, 0);
    cuIpcCloseMemHandle(opened);
    cuMemPoolImportPointer(&opened, NULL, &pooled);
    cuMemRetainAllocationHandle(&physical, (void *)data);
}

static void host(void *user) {
    called += *(int *)user;
}

static int launch(const char *key) {
    TRY(cuGraphLaunch, execs[exec_count - 1], stream);
    return say(key);
}

/* With the functions of the per-thread default stream or without; the stream is the same. */
static int captured_to_a_graph(const char *key, int twins) {
    foundry_graph *found = foundry.mode() == 2 ? foundry.find("rare", key) : NULL;
    if (found && !foundry.wait(found)) {
        if (failed("cuGraphLaunch", (CUresult)foundry.launch(found, stream))) return 0;
        return say(key);
    }
    TRY(cuGraphCreate, &graph, 0);
    if (twins)
        TRY(cuStreamBeginCaptureToGraph_ptsz, stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED);
    else
        TRY(cuStreamBeginCaptureToGraph, stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED);
    capturing = 1;
    TRY(cuLaunchKernel, add, 1, 1, 1, 1, 1, 1, 0, stream, arguments_of_add, NULL);
    TRY(cuLaunchCooperativeKernel_ptsz, add, 1, 1, 1, 1, 1, 1, 0, stream, arguments_of_add);
    capturing = 0;
    TRY(cuStreamEndCapture, stream, &graph);
    CUDA_GRAPH_INSTANTIATE_PARAMS how;
    memset(&how, 0, sizeof how);
    foundry.begin("rare", key);
    CUresult result =
        (twins ? cuGraphInstantiateWithParams_ptsz : cuGraphInstantiateWithParams)(&execs[exec_count], graph, &how);
    foundry.end("{}");
    if (failed("cuGraphInstantiateWithParams", result)) return 0;
    ++exec_count;
    DO(launch(key));
    LEAVE(graph, cuGraphDestroy, graph);
    return !broken;
}

static int one_set(CUgraph into, CUgraphNode *node, unsigned value) {
    CUDA_MEMSET_NODE_PARAMS set = {data, 0, value, 4, 2, 1};
    TRY(cuGraphAddMemsetNode, node, into, NULL, 0, &set, context);
    return 1;
}

/* A graph with a node of every kind that can be changed, made by old functions and changed in its executable. */
static int changed(void) {
    static int one = 1, two = 2;
    CUgraphNode kernel, copy, set, call, child, record, wait, error, in_child;
    CUgraphExecUpdateResult updated;
    CUgraphNodeParams any;
    CUDA_KERNEL_NODE_PARAMS_v1 launch_v1;
    CUDA_KERNEL_NODE_PARAMS launch_v2;
    CUDA_HOST_NODE_PARAMS to_call = {host, &one}, to_call_later = {host, &two};
    CUDA_MEMCPY3D move;
    memset(&launch_v1, 0, sizeof launch_v1);
    memset(&launch_v2, 0, sizeof launch_v2);
    memset(&move, 0, sizeof move);
    memset(&any, 0, sizeof any);
    launch_v1.func = launch_v2.func = add;
    launch_v1.gridDimX = launch_v1.gridDimY = launch_v1.gridDimZ = 1;
    launch_v1.blockDimX = launch_v1.blockDimY = launch_v1.blockDimZ = 1;
    launch_v2.gridDimX = launch_v2.gridDimY = launch_v2.gridDimZ = 1;
    launch_v2.blockDimX = launch_v2.blockDimY = launch_v2.blockDimZ = 1;
    launch_v1.kernelParams = launch_v2.kernelParams = arguments_of_add;
    move.srcMemoryType = move.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    move.srcDevice = other;
    move.dstDevice = data + 16;
    move.WidthInBytes = move.Height = move.Depth = 1;
    TRY(cuGraphCreate, &graph, 0);
    TRY(cuGraphCreate, &inner, 0);
    TRY(cuGraphCreate, &inner_again, 0);
    DO(one_set(inner, &in_child, 5));
    DO(one_set(inner_again, &in_child, 6));
    DO(one_set(graph, &set, 7));
    TRY(cuGraphAddKernelNode, &kernel, graph, &set, 1, &launch_v1);
    TRY(cuGraphAddMemcpyNode, &copy, graph, &kernel, 1, &move, context);
    TRY(cuGraphAddHostNode, &call, graph, &copy, 1, &to_call);
    TRY(cuGraphAddChildGraphNode, &child, graph, &call, 1, inner);
    TRY(cuGraphAddEventRecordNode, &record, graph, &child, 1, first_event);
    TRY(cuGraphAddEventWaitNode, &wait, graph, &record, 1, first_event);
    TRY(cuGraphInstantiate, &execs[exec_count], graph, &error, NULL, 0);
    ++exec_count;
    DO(launch("made"));
    TRY(cuGraphInstantiate_v2, &execs[exec_count], graph, &error, NULL, 0);
    ++exec_count;
    CUgraphExec exec = execs[exec_count - 1];
    scale = 4;
    TRY(cuGraphExecKernelNodeSetParams, exec, kernel, &launch_v1);
    DO(launch("kernel v1"));
    scale = 5;
    TRY(cuGraphExecKernelNodeSetParams_v2, exec, kernel, &launch_v2);
    DO(launch("kernel v2"));
    move.WidthInBytes = 4;
    TRY(cuGraphExecMemcpyNodeSetParams, exec, copy, &move, context);
    TRY(cuGraphExecHostNodeSetParams, exec, call, &to_call_later);
    TRY(cuGraphExecChildGraphNodeSetParams, exec, child, inner_again);
    TRY(cuGraphExecEventRecordNodeSetEvent, exec, record, second_event);
    TRY(cuGraphExecEventWaitNodeSetEvent, exec, wait, second_event);
    DO(launch("others"));
    any.type = CU_GRAPH_NODE_TYPE_MEMSET;
    any.memset.dst = data;
    any.memset.value = 9;
    any.memset.elementSize = 4;
    any.memset.width = 2;
    any.memset.height = 1;
    any.memset.ctx = context;
    TRY(cuGraphExecNodeSetParams, exec, set, &any);
    DO(launch("any"));
    TRY(cuGraphNodeSetEnabled, exec, kernel, 0);
    DO(launch("without"));
    TRY(cuGraphExecUpdate, exec, graph, &error, &updated);
    return launch("updated");
}

static int work(const void *image) {
    DO(start());
    DO(load(image));
    unusual();
    DO(captured_to_a_graph("captured", 0));
    DO(captured_to_a_graph("per-thread", 1));
    DO(changed());
    foundry.commit();
    return 1;
}

static void leave(void) {
    if (capturing) {
        CUgraph gone = NULL;
        cuStreamEndCapture(stream, &gone);
    }
    for (int index = 0; index < exec_count; ++index) LEAVE(execs[index], cuGraphExecDestroy, execs[index]);
    LEAVE(graph, cuGraphDestroy, graph);
    LEAVE(inner, cuGraphDestroy, inner);
    LEAVE(inner_again, cuGraphDestroy, inner_again);
    LEAVE(data, cuMemFree_v2, data);
    LEAVE(other, cuMemFree_v2, other);
    LEAVE(pinned, cuMemFreeHost, pinned);
    LEAVE(first_event, cuEventDestroy_v2, first_event);
    LEAVE(second_event, cuEventDestroy_v2, second_event);
    LEAVE(stream, cuStreamDestroy_v2, stream);
    LEAVE(fat, cuModuleUnload, fat);
    LEAVE(library, cuLibraryUnload, library);
    LEAVE(older, cuCtxDestroy_v2, older);
    LEAVE(old, cuCtxDestroy_v2, old);
    if (!context) return;
    failed("cuDevicePrimaryCtxReset_v2", cuDevicePrimaryCtxReset_v2(device));
    LEAVE(context, cuDevicePrimaryCtxRelease_v2, device);
}

int main(int count, char **arguments) {
    static unsigned char image[1 << 22];
    if (count < 2) return 2;
    FILE *file = fopen(arguments[1], "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return 2;
    fclose(file);
    find_interface();
    if (!work(image) && !broken) SAY("wrong answer");
    leave();
    SAY("%s", broken ? "broken" : "done");
    return broken ? 10 : 0;
}
