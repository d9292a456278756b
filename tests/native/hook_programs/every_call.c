/* Uses nearly all of the driver, as a program that looks at every result: at the first error it says which function
 * failed and how, gives back all that it holds, and ends with 10. What its graphs and kernels compute it says as it
 * goes; in a restore it takes the graphs from the archive. argv[1] is the image. */
#define _GNU_SOURCE
#include "interface.h"
#include "program.h"

#define NAME_OF(function) #function
#define NAME(function) NAME_OF(function)
#define FAILED(function, ...) failed(NAME(function), function(__VA_ARGS__))
#define TRY(function, ...)                                                                                             \
    do {                                                                                                               \
        if (FAILED(function, __VA_ARGS__)) return 0;                                                                   \
    } while (0)
#define DO(step)                                                                                                       \
    do {                                                                                                               \
        if (!(step)) return 0;                                                                                         \
    } while (0)
/* Gives back what a variable holds, if anything. */
#define LEAVE(variable, function, ...)                                                                                 \
    do {                                                                                                               \
        if (variable) FAILED(function, __VA_ARGS__);                                                                   \
        variable = 0;                                                                                                  \
    } while (0)

enum { words = 16, most_execs = 16, most_inside = 4 };

static CUdevice device;
static CUcontext context, second_context;
static CUstream stream, side;
static CUevent begin, end, fork_event, join_event, outside;
static CUdeviceptr data, copy, large, pitched, managed, ordered, scratch, pooled, of_second, reserved;
static CUdeviceptr churned[4], inside[most_inside];
static CUmemoryPool pool;
static CUmemGenericAllocationHandle physical;
static int mapped, initialised, capturing, broken;
static void *pinned;
static uint32_t ordinary[1024] __attribute__((aligned(4096))), *registered;
static CUlibrary library, library_of_file;
static CUmodule optioned, plain, module_of_file;
static CUfunction add, add_optioned, wide, sum;
static CUgraph graph, inner;
static CUgraphExec execs[most_execs];
static foundry_graph *given[most_execs]; /* by the archive, in the place of an exec */
static int exec_count;

static int failed(const char *function, CUresult result) {
    if (!result) return 0;
    SAY("error %s %d", function, result);
    broken = 1;
    return 1;
}

static int say(const char *what, CUdeviceptr address) {
    uint32_t got[words];
    TRY(cuStreamSynchronize, stream);
    TRY(cuMemcpyDtoH, got, address, sizeof got);
    printf("%s", what);
    for (int index = 0; index < words; ++index) printf(" %u", got[index]);
    SAY("%s", "");
    return 1;
}

static int start(void) {
    int count, version, value;
    char name[64];
    CUuuid uuid;
    size_t size, free;
    CUcontext current;
    CUdevice of_context;
    TRY(cuInit, 0);
    initialised = 1;
    TRY(cuDriverGetVersion, &version);
    TRY(cuDeviceGetCount, &count);
    TRY(cuDeviceGet, &device, 0);
    TRY(cuDeviceGetName, name, sizeof name, device);
    TRY(cuDeviceGetUuid, &uuid, device);
    TRY(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    TRY(cuDeviceTotalMem, &size, device);
    SAY("device %d %d %s %d", version, count, name, value);
    TRY(cuDevicePrimaryCtxRetain, &context, device);
    TRY(cuCtxSetCurrent, context);
    TRY(cuCtxGetCurrent, &current);
    TRY(cuCtxGetDevice, &of_context);
    TRY(cuMemGetInfo, &free, &size);
    TRY(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    TRY(cuStreamCreateWithPriority, &side, CU_STREAM_NON_BLOCKING, -1);
    TRY(cuEventCreate, &begin, 0);
    TRY(cuEventCreate, &end, 0);
    return current == context && of_context == device;
}

static int load(const void *image, const char *path) {
    CUjit_option options[] = {CU_JIT_MAX_REGISTERS};
    void *values[] = {(void *)32};
    CUkernel kernel, all[16];
    CUmodule of_library;
    CUdeviceptr counter;
    size_t size;
    unsigned count;
    int value;
    TRY(cuLibraryLoadData, &library, image, NULL, NULL, 0, NULL, NULL, 0);
    TRY(cuLibraryGetKernelCount, &count, library);
    TRY(cuLibraryEnumerateKernels, all, count < 16 ? count : 16, library);
    TRY(cuLibraryGetKernel, &kernel, library, "add_constant");
    TRY(cuKernelGetFunction, &add, kernel);
    TRY(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, kernel, device);
    TRY(cuKernelGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, device);
    TRY(cuLibraryGetModule, &of_library, library);
    TRY(cuLibraryGetGlobal, &counter, &size, library, "counter");
    TRY(cuModuleLoadDataEx, &optioned, image, 1, options, values);
    TRY(cuModuleGetFunction, &add_optioned, optioned, "add_constant");
    TRY(cuModuleLoadData, &plain, image);
    TRY(cuModuleGetFunction, &wide, plain, "wide");
    TRY(cuModuleGetFunction, &sum, plain, "vector_add");
    TRY(cuModuleGetGlobal, &counter, &size, plain, "counter");
    TRY(cuFuncSetAttribute, wide, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 512);
    TRY(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, wide);
    TRY(cuModuleLoad, &module_of_file, path);
    TRY(cuLibraryLoadFromFile, &library_of_file, path, NULL, NULL, 0, NULL, NULL, 0);
    return 1;
}

static int check_pointer(CUdeviceptr address, size_t wanted) {
    CUdeviceptr base = 0, start_address = 0;
    size_t size = 0;
    CUcontext of = NULL;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
    void *values[] = {&of, &start_address};
    TRY(cuMemGetAddressRange, &base, &size, address + 4);
    TRY(cuPointerGetAttribute, &of, CU_POINTER_ATTRIBUTE_CONTEXT, address);
    TRY(cuPointerGetAttributes, 2, attributes, values, address);
    SAY("pointer %d %d", base == address && start_address == address && size == wanted, of == context);
    return 1;
}

static int allocate(void) {
    size_t pitch;
    uint32_t numbers[words];
    for (uint32_t index = 0; index < words; ++index) numbers[index] = index * 3;
    TRY(cuMemAlloc, &data, 4096);
    TRY(cuMemAlloc, &copy, 4096);
    TRY(cuMemAlloc, &large, 5 << 20);
    TRY(cuMemAllocPitch, &pitched, &pitch, 100, 8, 4);
    TRY(cuMemsetD32, data, 1, 1024);
    TRY(cuMemsetD8, copy, 0, 4096);
    TRY(cuMemcpyHtoD, large, numbers, sizeof numbers);
    TRY(cuMemcpyDtoD, pitched, large, sizeof numbers);
    DO(check_pointer(data, 4096));
    DO(say("pitched", pitched));
    return 1;
}

/* Memory of every other kind, and frees whose places the next allocations take. */
static int churn(void) {
    foundry.scratch_begin("warm-up");
    TRY(cuMemAlloc, &scratch, 3000);
    CUdeviceptr warm = scratch;
    scratch = 0;
    TRY(cuMemFree, warm);
    foundry.scratch_end();
    for (int index = 0; index < 4; ++index) TRY(cuMemAlloc, &churned[index], (size_t)(index + 1) << 19);
    for (int index = 0; index < 4; index += 2) {
        CUdeviceptr gone = churned[index];
        churned[index] = 0;
        TRY(cuMemFree, gone);
    }
    TRY(cuMemAlloc, &churned[0], 1 << 20);
    TRY(cuMemsetD32Async, churned[0], 8, words, stream);
    DO(say("churned", churned[0]));
    TRY(cuMemAllocAsync, &ordered, 2000, stream);
    TRY(cuMemsetD32Async, ordered, 5, words, stream);
    DO(say("ordered", ordered));
    CUdeviceptr gone = ordered;
    ordered = 0;
    TRY(cuMemFreeAsync, gone, stream);
    TRY(cuMemAllocAsync, &ordered, 2000, stream);
    TRY(cuMemAllocManaged, &managed, 4096, CU_MEM_ATTACH_GLOBAL);
    TRY(cuMemAllocHost, &pinned, 4096);
    TRY(cuMemHostRegister, ordinary, sizeof ordinary, 0);
    registered = ordinary;
    memset(pinned, 6, 4096);
    TRY(cuMemcpyHtoDAsync, large, pinned, 64, stream);
    DO(say("pinned", large));
    return 1;
}

static int pools_and_mappings(void) {
    CUmemPoolProps of_pool;
    CUmemAllocationProp property;
    CUmemAccessDesc access;
    size_t unit;
    memset(&of_pool, 0, sizeof of_pool);
    memset(&property, 0, sizeof property);
    memset(&access, 0, sizeof access);
    of_pool.allocType = property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    of_pool.location.type = property.location.type = access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    TRY(cuMemPoolCreate, &pool, &of_pool);
    TRY(cuMemAllocFromPoolAsync, &pooled, 1024, pool, stream);
    TRY(cuMemGetAllocationGranularity, &unit, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    TRY(cuMemAddressReserve, &reserved, unit, 0, 0, 0);
    TRY(cuMemCreate, &physical, unit, &property, 0);
    TRY(cuMemMap, reserved, unit, 0, physical, 0);
    mapped = 1;
    TRY(cuMemSetAccess, reserved, unit, &access, 1);
    TRY(cuMemsetD32, reserved, 77, words);
    DO(say("mapped", reserved));
    TRY(cuCtxCreate, &second_context, NULL, 0, device);
    TRY(cuMemAlloc, &of_second, 100);
    TRY(cuCtxSynchronize);
    TRY(cuCtxPopCurrent, &second_context);
    TRY(cuCtxPushCurrent, context);
    return 1;
}

static int eager(void) {
    uint8_t amount = 3;
    uint32_t scale = 2;
    uint64_t count = words;
    float milliseconds;
    void *parameters[] = {&data, &amount, &scale, &count};
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 16;
    config.hStream = stream;
    TRY(cuEventRecord, begin, stream);
    TRY(cuLaunchKernel, add, 1, 1, 1, 16, 1, 1, 0, stream, parameters, NULL);
    TRY(cuLaunchKernelEx, &config, add_optioned, parameters, NULL);
    TRY(cuEventRecord, end, stream);
    TRY(cuStreamWaitEvent, side, end, 0);
    TRY(cuEventSynchronize, end);
    TRY(cuEventQuery, end);
    TRY(cuStreamQuery, stream);
    TRY(cuEventElapsedTime, &milliseconds, begin, end);
    return say("eager", data);
}

static int launch(int index) {
    if (!given[index]) TRY(cuGraphLaunch, execs[index], stream);
    return !given[index] || !failed(NAME(cuGraphLaunch), (CUresult)foundry.launch(given[index], stream));
}

/* 1 = the archive had it, 0 = it is for the program to capture, -1 = an error. */
static int restored(const char *key) {
    if (foundry.mode() != 2) return 0;
    foundry_graph *found = foundry.find("every", key);
    if (!found || foundry.wait(found)) {
        fprintf(stderr, "not restored %s: %s\n", key, foundry.reason());
        return 0;
    }
    given[exec_count] = found;
    if (!launch(exec_count++)) return -1;
    return say(key, copy) ? 1 : -1;
}

/* Instantiates the graph under a name, launches it, and destroys the graph. */
static int finish(const char *key, unsigned long long flags) {
    CUgraphExec *exec = &execs[exec_count];
    foundry.begin("every", key);
    CUresult result = cuGraphInstantiate(exec, graph, flags);
    foundry.end(key);
    if (failed(NAME(cuGraphInstantiate), result)) return 0;
    ++exec_count;
    TRY(cuGraphUpload, *exec, stream);
    TRY(cuGraphLaunch, *exec, stream);
    DO(say(key, copy));
    CUgraph gone = graph;
    graph = NULL;
    TRY(cuGraphDestroy, gone);
    return 1;
}

static int capture_body(uint64_t elements) {
    uint8_t amount = (uint8_t)elements, bytes[48];
    uint32_t scale = 5;
    memset(bytes, (int)elements, sizeof bytes);
    TRY(cuMemAlloc, &inside[elements - 1], 1000 * elements);
    CUdeviceptr target = inside[elements - 1] + 800;
    void *of_add[] = {&data, &amount, &scale, &elements}, *of_wide[] = {bytes, &target};
    TRY(cuMemsetD32Async, data, (unsigned)elements, 16, stream);
    TRY(cuMemsetD2D32Async, copy, 64, 0, 4, 2, stream);
    TRY(cuLaunchKernel, add, (unsigned)elements, 1, 1, 16, 1, 1, 512, stream, of_add, NULL);
    TRY(cuEventRecord, fork_event, stream);
    TRY(cuStreamWaitEvent, side, fork_event, 0);
    TRY(cuLaunchKernel, wide, 1, 1, 1, 1, 1, 1, 0, side, of_wide, NULL);
    TRY(cuEventRecord, join_event, side);
    TRY(cuLaunchKernel, add_optioned, 1, 2, 1, 16, 1, 1, 0, stream, of_add, NULL);
    TRY(cuStreamWaitEvent, stream, join_event, 0);
    TRY(cuEventRecordWithFlags, outside, stream, CU_EVENT_RECORD_EXTERNAL);
    TRY(cuMemcpyDtoDAsync, copy, data, 12, stream);
    TRY(cuMemcpyDtoDAsync, copy + 12, target, 4, stream);
    return 1;
}

static int destroy_events(void) {
    LEAVE(fork_event, cuEventDestroy, fork_event);
    LEAVE(join_event, cuEventDestroy, join_event);
    LEAVE(outside, cuEventDestroy, outside);
    return !broken;
}

/* One topology for all sizes; memory is taken in the capture. */
static int capture(const char *key, uint64_t elements) {
    int known = restored(key);
    if (known) return known > 0;
    CUstreamCaptureStatus status;
    TRY(cuEventCreate, &fork_event, CU_EVENT_DISABLE_TIMING);
    TRY(cuEventCreate, &join_event, CU_EVENT_DISABLE_TIMING);
    TRY(cuEventCreate, &outside, CU_EVENT_DISABLE_TIMING);
    TRY(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    capturing = 1;
    DO(capture_body(elements));
    TRY(cuStreamIsCapturing, stream, &status);
    TRY(cuStreamEndCapture, stream, &graph);
    capturing = 0;
    DO(destroy_events());
    return finish(key, 0);
}

static CUDA_KERNEL_NODE_PARAMS launch_of(CUfunction function, void **parameters) {
    CUDA_KERNEL_NODE_PARAMS launch;
    memset(&launch, 0, sizeof launch);
    launch.func = function;
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
    launch.kernelParams = parameters;
    return launch;
}

static int explicit_graph(void) {
    int known = restored("outer");
    if (known) return known > 0;
    CUgraphNode empty, first, second, child, last, copied;
    CUdeviceptr other = data + 1024;
    uint32_t count = 4;
    void *arguments[] = {&copy, &data, &other, &count};
    CUDA_KERNEL_NODE_PARAMS launch = launch_of(sum, arguments);
    CUDA_MEMSET_NODE_PARAMS set = {other, 0, 0x40, 1, 64, 1};
    CUDA_MEMCPY3D move;
    CUgraphEdgeData programmatic = {
        CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {0}};
    CUkernelNodeAttrValue priority;
    memset(&priority, 0, sizeof priority);
    memset(&move, 0, sizeof move);
    priority.priority = -1;
    move.srcMemoryType = move.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    move.srcDevice = data;
    move.dstDevice = copy + 32;
    move.WidthInBytes = 16;
    move.Height = move.Depth = 1;
    TRY(cuGraphCreate, &inner, 0);
    TRY(cuGraphAddMemsetNode, &first, inner, NULL, 0, &set, context);
    TRY(cuGraphAddKernelNode, &second, inner, &first, 1, &launch);
    TRY(cuGraphKernelNodeSetAttribute, second, CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority);
    TRY(cuGraphAddKernelNode, &last, inner, NULL, 0, &launch);
    TRY(cuGraphAddDependencies, inner, &second, &last, &programmatic, 1);
    TRY(cuGraphCreate, &graph, 0);
    TRY(cuGraphAddEmptyNode, &empty, graph, NULL, 0);
    TRY(cuGraphAddChildGraphNode, &child, graph, &empty, 1, inner);
    TRY(cuGraphAddMemcpyNode, &copied, graph, NULL, 0, &move, context);
    TRY(cuGraphAddDependencies, graph, &child, &copied, NULL, 1);
    DO(finish("outer", CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    LEAVE(inner, cuGraphDestroy, inner);
    return !broken;
}

/* Graphs of one shape: other kernels, with and without a launch attribute. */
static int shaped_graph(const char *key, int priority) {
    int known = restored(key);
    if (known) return known > 0;
    CUgraphNode node;
    uint8_t bytes[48], amount = 2;
    uint32_t scale = 3;
    uint64_t elements = 4;
    memset(bytes, 1, sizeof bytes);
    void *of_add[] = {&copy, &amount, &scale, &elements}, *of_wide[] = {bytes, &copy};
    CUDA_KERNEL_NODE_PARAMS launch = launch_of(priority ? add : wide, priority ? of_add : of_wide);
    CUkernelNodeAttrValue value;
    memset(&value, 0, sizeof value);
    value.priority = priority;
    TRY(cuGraphCreate, &graph, 0);
    TRY(cuGraphAddKernelNode, &node, graph, NULL, 0, &launch);
    if (priority) TRY(cuGraphKernelNodeSetAttribute, node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    return finish(key, 0);
}

/* Changed after it was made, as native engines do; and one that allocates, which no restore gives back. */
static int changing_graphs(void) {
    CUgraphNode node;
    CUgraphExecUpdateResultInfo info;
    CUdeviceptr within;
    CUDA_MEMSET_NODE_PARAMS set = {copy, 0, 9, 4, 4, 1};
    TRY(cuGraphCreate, &graph, 0);
    TRY(cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, context);
    CUgraphExec *exec = &execs[exec_count];
    TRY(cuGraphInstantiate, exec, graph, 0);
    ++exec_count;
    TRY(cuGraphLaunch, *exec, stream);
    DO(say("unnamed", copy));
    set.value = 10;
    TRY(cuGraphMemsetNodeSetParams, node, &set);
    TRY(cuGraphExecUpdate, *exec, graph, &info);
    TRY(cuGraphLaunch, *exec, stream);
    DO(say("updated", copy));
    set.value = 11;
    TRY(cuGraphExecMemsetNodeSetParams, *exec, node, &set, context);
    TRY(cuGraphLaunch, *exec, stream);
    DO(say("changed", copy));
    LEAVE(graph, cuGraphDestroy, graph);
    TRY(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    capturing = 1;
    TRY(cuMemAllocAsync, &within, 512, stream);
    TRY(cuMemsetD32Async, within, 12, 4, stream);
    TRY(cuMemcpyDtoDAsync, copy, within, 16, stream);
    TRY(cuMemFreeAsync, within, stream);
    TRY(cuStreamEndCapture, stream, &graph);
    capturing = 0;
    return finish("allocating", 0);
}

static int work(const void *image, const char *path) {
    DO(start());
    DO(load(image, path));
    DO(allocate());
    DO(churn());
    DO(pools_and_mappings());
    DO(eager());
    DO(capture("4", 4));
    DO(capture("2", 2));
    DO(capture("1", 1));
    DO(explicit_graph());
    DO(shaped_graph("shape-1", -2));
    DO(shaped_graph("shape-2", 0));
    DO(shaped_graph("shape-3", -1));
    DO(changing_graphs());
    foundry.commit();
    DO(eager());
    for (int index = 0; index < exec_count; ++index) DO(launch(index));
    TRY(cuCtxSynchronize);
    return say("last", data);
}

/* All that is held, whatever the program came to. */
static void leave(void) {
    if (capturing) {
        cuStreamEndCapture(stream, &graph); /* broken by what failed in it */
        capturing = 0;
    }
    destroy_events();
    for (int index = 0; index < exec_count; ++index) LEAVE(execs[index], cuGraphExecDestroy, execs[index]);
    LEAVE(graph, cuGraphDestroy, graph);
    LEAVE(inner, cuGraphDestroy, inner);
    CUdeviceptr *all[] = {&data, &copy, &large, &pitched, &managed, &scratch};
    for (unsigned index = 0; index < sizeof all / sizeof *all; ++index) LEAVE(*all[index], cuMemFree, *all[index]);
    for (int index = 0; index < 4; ++index) LEAVE(churned[index], cuMemFree, churned[index]);
    for (int index = 0; index < most_inside; ++index) LEAVE(inside[index], cuMemFree, inside[index]);
    LEAVE(ordered, cuMemFreeAsync, ordered, stream);
    LEAVE(pooled, cuMemFreeAsync, pooled, stream);
    LEAVE(pool, cuMemPoolDestroy, pool);
    LEAVE(mapped, cuMemUnmap, reserved, 2 << 20);
    LEAVE(physical, cuMemRelease, physical);
    LEAVE(reserved, cuMemAddressFree, reserved, 2 << 20);
    LEAVE(pinned, cuMemFreeHost, pinned);
    LEAVE(registered, cuMemHostUnregister, registered);
    LEAVE(of_second, cuMemFree, of_second);
    LEAVE(second_context, cuCtxDestroy, second_context);
    LEAVE(begin, cuEventDestroy, begin);
    LEAVE(end, cuEventDestroy, end);
    LEAVE(side, cuStreamDestroy, side);
    LEAVE(stream, cuStreamDestroy, stream);
    LEAVE(optioned, cuModuleUnload, optioned);
    LEAVE(plain, cuModuleUnload, plain);
    LEAVE(module_of_file, cuModuleUnload, module_of_file);
    LEAVE(library_of_file, cuLibraryUnload, library_of_file);
    LEAVE(library, cuLibraryUnload, library);
    LEAVE(context, cuDevicePrimaryCtxRelease, device);
}

int main(int count, char **arguments) {
    static unsigned char image[1 << 22];
    if (count < 2) return 2;
    FILE *file = fopen(arguments[1], "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return 2;
    fclose(file);
    find_interface();
    if (!work(image, arguments[1]) && !broken) SAY("wrong answer");
    if (initialised) leave();
    SAY("%s", broken ? "broken" : "done");
    return broken ? 10 : 0;
}
