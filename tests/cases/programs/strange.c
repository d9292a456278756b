/* Does what argv[1] names, and says what the driver answered: the same with the hook as without it. Addresses and
 * handles are never said. */
#include "program.h"

#include <pthread.h>

static CUcontext context;
static CUstream stream;
static CUdeviceptr data;

static CUmemAllocationProp properties(void) {
    CUmemAllocationProp of;
    memset(&of, 0, sizeof of);
    of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    of.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return of;
}

/* As an allocator's own thread does, which has no context. */
static void *map_without_context(void *unused) {
    (void)unused;
    CUcontext now = (CUcontext)1;
    CUmemAllocationProp of = properties();
    CUmemGenericAllocationHandle handle;
    CUmemAccessDesc access = {of.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr place, none;
    size_t grain = 0, size = 4 << 20;
    SAY("current %d %d", cuCtxGetCurrent(&now), now != NULL);
    SAY("granularity %d", cuMemGetAllocationGranularity(&grain, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    SAY("create %d", cuMemCreate(&handle, size, &of, 0));
    SAY("reserve %d", cuMemAddressReserve(&place, size, 0, 0, 0));
    SAY("map %d", cuMemMap(place, size, 0, handle, 0));
    SAY("access %d", cuMemSetAccess(place, size, &access, 1));
    SAY("alloc %d", cuMemAlloc(&none, 100));
    SAY("free %d", cuMemFree(place));
    SAY("unmap %d", cuMemUnmap(place, size));
    SAY("release %d", cuMemRelease(handle));
    SAY("address-free %d", cuMemAddressFree(place, size));
    return NULL;
}

static void without_context(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, map_without_context, NULL);
    pthread_join(thread, NULL);
}

/* Each call in a capture of its own, and whether the capture outlived it. */
#define IN_CAPTURE(name, call)                                                                                         \
    do {                                                                                                               \
        CUgraph graph = NULL;                                                                                          \
        MUST(cuStreamBeginCapture(stream, mode));                                                                      \
        MUST(cuMemsetD32Async(data, 1, 4, stream));                                                                    \
        int answer = (int)(call);                                                                                      \
        CUstreamCaptureStatus status;                                                                                  \
        cuStreamIsCapturing(stream, &status);                                                                          \
        SAY("%s %d %d %d", name, answer, status, cuStreamEndCapture(stream, &graph));                                  \
        if (graph) MUST(cuGraphDestroy(graph));                                                                        \
    } while (0)

static void in_capture(CUstreamCaptureMode mode) {
    CUdeviceptr held, taken = 0;
    CUevent event;
    CUstream other;
    CUmemAllocationProp of = properties();
    CUmemGenericAllocationHandle handle;
    size_t free, total;
    unsigned word;
    void *host;
    MUST(cuMemAlloc(&held, 4096));
    MUST(cuEventCreate(&event, 0));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc(&host, 4096, 0));
    IN_CAPTURE("nothing", 0);
    IN_CAPTURE("info", cuMemGetInfo(&free, &total));
    IN_CAPTURE("synchronize", cuCtxSynchronize());
    IN_CAPTURE("stream-synchronize", cuStreamSynchronize(stream));
    IN_CAPTURE("other-synchronize", cuStreamSynchronize(other));
    IN_CAPTURE("stream-query", cuStreamQuery(stream));
    IN_CAPTURE("event-query", cuEventQuery(event));
    IN_CAPTURE("event-synchronize", cuEventSynchronize(event));
    IN_CAPTURE("read-back", cuMemcpyDtoH(&word, data, 4));
    IN_CAPTURE("legacy-set", cuMemsetD32(data, 1, 4));
    IN_CAPTURE("host-alloc", cuMemHostAlloc(&host, 4096, 0));
    IN_CAPTURE("create", cuMemCreate(&handle, 2 << 20, &of, 0));
    IN_CAPTURE("stream-create", cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    IN_CAPTURE("begin-again", cuStreamBeginCapture(stream, mode));
    (void)taken;
}

static void *end_elsewhere(void *graph) {
    MUST(cuCtxSetCurrent(context));
    SAY("another thread %d", cuStreamEndCapture(stream, graph));
    return NULL;
}

/* Ends what began in whatever way, and says what came of it. */
static void ended(const char *how, CUstream where) {
    CUgraph graph = NULL;
    CUgraphExec exec;
    int result = cuStreamEndCapture(where, &graph);
    SAY("%s %d %d", how, result, graph != NULL);
    if (result || !graph) return;
    SAY("instantiate %d", cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* Captures that are broken in every way, and after each one that is not. */
static void broken(void) {
    const CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    CUstream side;
    CUevent event, foreign;
    CUgraph graph = NULL;
    pthread_t thread;
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&foreign, CU_EVENT_DISABLE_TIMING));
    for (int way = 0; way < 7; ++way) {
        if (way != 5) MUST(cuStreamBeginCapture(stream, mode));
        if (way != 5) MUST(cuMemsetD32Async(data, 1, 4, stream));
        if (way == 0) { /* a side stream that is not joined */
            MUST(cuEventRecord(event, stream));
            SAY("fork %d", cuStreamWaitEvent(side, event, 0));
            SAY("side %d", cuMemsetD32Async(data + 64, 2, 4, side));
        } else if (way == 1) /* ended on a stream that began none */
            ended("other stream", side);
        else if (way == 2) /* begun twice */
            SAY("begin %d", cuStreamBeginCapture(stream, mode));
        else if (way == 3) { /* joined to another capture */
            MUST(cuStreamBeginCapture(side, mode));
            SAY("record %d", cuEventRecord(foreign, side));
            SAY("wait %d", cuStreamWaitEvent(stream, foreign, 0));
            ended("the other", side);
        } else if (way == 4) /* waited for */
            SAY("wait %d", cuStreamSynchronize(stream));
        else if (way == 6) { /* ended by another thread */
            pthread_create(&thread, NULL, end_elsewhere, &graph);
            pthread_join(thread, NULL);
        }
        ended("broken", stream);
        MUST(cuStreamBeginCapture(stream, mode));
        MUST(cuMemsetD32Async(data, (unsigned)way, 4, stream));
        ended("sound", stream);
    }
    MUST(cuStreamDestroy(side));
}

static void pools(void) {
    CUmemoryPool pool, first;
    CUmemPoolProps of;
    CUdeviceptr before, after, async, inner;
    CUdevice device;
    MUST(cuCtxGetDevice(&device));
    memset(&of, 0, sizeof of);
    of.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    of.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    SAY("default %d", cuDeviceGetDefaultMemPool(&first, device));
    SAY("create %d", cuMemPoolCreate(&pool, &of));
    SAY("from-pool %d", cuMemAllocFromPoolAsync(&before, 4096, pool, stream));
    SAY("plain %d", cuMemAlloc(&after, 3 << 20));
    SAY("async %d", cuMemAllocAsync(&async, 4096, stream));
    SAY("apart %d", before != after && after != async && async != before);
    SAY("inner %d", cuMemFree(after + 512));
    SAY("inner-async %d", cuMemFreeAsync(after + 512, stream));
    SAY("foreign %d", cuMemFree((CUdeviceptr)0x7000));
    SAY("of-host %d", cuMemFree((CUdeviceptr)(uintptr_t)&pool));
    SAY("wild %d", cuMemFree(~(CUdeviceptr)0));
    SAY("free-plain-async %d", cuMemFreeAsync(after, stream));
    SAY("twice %d", cuMemFree(after));
    SAY("free-async-plain %d", cuMemFree(async));
    SAY("twice-async %d", cuMemFreeAsync(async, stream));
    SAY("free-of-pool %d", cuMemFreeAsync(before, stream));
    SAY("synchronize %d", cuStreamSynchronize(stream));
    SAY("after-free %d", cuMemGetAddressRange(&inner, NULL, after) == CUDA_SUCCESS);
    SAY("destroy %d", cuMemPoolDestroy(pool));
    MUST(cuMemPoolCreate(&pool, &of));
    SAY("destroyed-in-use %d %d", cuMemAllocFromPoolAsync(&before, 4096, pool, stream), cuMemPoolDestroy(pool));
}

/* A failing update, and that work goes on after it. */
static void update(void) {
    CUgraph one, two;
    CUgraphNode node, second;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    CUDA_MEMSET_NODE_PARAMS set = {data, 0, 7, 4, 4, 1};
    unsigned got[4] = {0};
    MUST(cuGraphCreate(&one, 0));
    MUST(cuGraphCreate(&two, 0));
    MUST(cuGraphAddMemsetNode(&node, one, NULL, 0, &set, context));
    MUST(cuGraphAddMemsetNode(&node, two, NULL, 0, &set, context));
    MUST(cuGraphAddEmptyNode(&second, two, &node, 1));
    MUST(cuGraphInstantiate(&exec, one, 0));
    CUresult result = cuGraphExecUpdate(exec, two, &info);
    SAY("update %d %d", result, info.result);
    SAY("launch %d", cuGraphLaunch(exec, stream));
    SAY("synchronize %d", cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(got, data, sizeof got));
    SAY("value %u", got[3]);
    SAY("instantiate %d", cuGraphInstantiate(&exec, two, 0));
    CUgraph outer;
    CUgraphConditionalHandle handle;
    CUgraphNodeParams what;
    memset(&what, 0, sizeof what);
    MUST(cuGraphConditionalHandleCreate(&handle, two, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    what.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    what.conditional.handle = handle;
    what.conditional.size = 1;
    what.conditional.ctx = context;
    MUST(cuGraphAddNode_v2(&node, two, NULL, NULL, 0, &what));
    MUST(cuGraphCreate(&outer, 0));
    SAY("child-with-conditional %d", cuGraphAddChildGraphNode(&second, outer, NULL, 0, two));
}

/* All memory, to the last: then nothing, and after a free as much as was freed. */
static void fill_up(void) {
    static CUdeviceptr all[4096];
    int count = 0;
    CUdeviceptr none = 5;
    while (count < 4096 && cuMemAlloc(&all[count], 8 << 20) == CUDA_SUCCESS) ++count;
    SAY("full %d", cuMemAlloc(&none, 8 << 20));
    SAY("async %d", cuMemAllocAsync(&none, 8 << 20, stream));
    SAY("many %d", count > 4);
    SAY("free %d", cuMemFree(all[0]));
    SAY("again %d", cuMemAlloc(&all[0], 8 << 20));
    for (int index = 0; index < count; ++index) MUST(cuMemFree(all[index]));
    int second = 0;
    while (second < 4096 && cuMemAlloc(&all[second], 8 << 20) == CUDA_SUCCESS) ++second;
    SAY("as-many %d", second == count);
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    context = primary_context();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&data, 4096));
    if (!strcmp(arguments[1], "without-context"))
        without_context();
    else if (!strcmp(arguments[1], "global"))
        in_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
    else if (!strcmp(arguments[1], "thread-local"))
        in_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    else if (!strcmp(arguments[1], "relaxed"))
        in_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
    else if (!strcmp(arguments[1], "broken"))
        broken();
    else if (!strcmp(arguments[1], "pools"))
        pools();
    else if (!strcmp(arguments[1], "update"))
        update();
    else if (!strcmp(arguments[1], "fill-up"))
        fill_up();
    else
        return 2;
    return 0;
}
