/* Captures named graphs with every kind of node that can be rebuilt; in a restore it takes them from the archive. Says
 * what they compute. argv[1] is the image, or a library with one named kernels; in a restore, argv[2] = lazy does not
 * load it for the program's own use, late does so at the end. */
#define _GNU_SOURCE
#include "interface.h"
#include "program.h"

static CUstream stream, side;
static CUdeviceptr data, copy;
static CUlibrary library;
static CUkernel kernel;
static CUfunction add, wide, optioned, twice;
static CUmodule modules[3];

static void load_kernels(void *image) {
    CUjit_option options[] = {CU_JIT_MAX_REGISTERS};
    void *values[] = {(void *)32};
    MUST(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "add_constant"));
    MUST(cuKernelGetFunction(&add, kernel));
    MUST(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, kernel, 0));
    MUST(cuModuleLoadDataEx(&modules[0], image, 1, options, values));
    MUST(cuModuleGetFunction(&optioned, modules[0], "add_constant"));
    /* Two more loads of the library's bytes; graphs use the second. */
    MUST(cuModuleLoadData(&modules[1], image));
    MUST(cuModuleLoadData(&modules[2], image));
    MUST(cuModuleGetFunction(&twice, modules[2], "vector_add"));
    MUST(cuModuleGetFunction(&wide, modules[2], "wide"));
}

static void print_results(const char *key) {
    uint32_t got[4];
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(got, copy, sizeof got));
    SAY("%s %u %u %u %u", key, got[0], got[1], got[2], got[3]);
}

/* Whether the archive had it. */
static int restored(const char *key) {
    if (foundry.mode() != 2) return 0;
    foundry_graph *graph = foundry.find("labelled", key);
    if (!graph || foundry.wait(graph)) {
        SAY("not restored %s: %s", key, foundry.reason());
        return 0;
    }
    if (foundry.launch(graph, stream)) exit(3);
    print_results(key);
    return 1;
}

static void finish(CUgraph graph, const char *key, unsigned long long flags) {
    CUgraphExec exec;
    char metadata[64];
    snprintf(metadata, sizeof metadata, "{\"key\": \"%s\"}", key);
    if (foundry.begin("labelled", key)) exit(3);
    MUST(cuGraphInstantiate(&exec, graph, flags));
    if (foundry.end(metadata)) exit(3);
    MUST(cuGraphLaunch(exec, stream));
    print_results(key);
}

/* One topology for all sizes; memory is taken in the capture, and given back for the next one to take, which begins
 * before the first one's and points to where that lay. */
static void capture_step(const char *key, uint64_t elements) {
    if (restored(key)) return;
    CUgraph graph;
    CUevent fork, join, outside;
    CUdeviceptr before = 0, inside;
    uint8_t amount = (uint8_t)elements;
    uint32_t scale = 5;
    uint8_t bytes[48];
    memset(bytes, (int)elements, sizeof bytes);
    struct __attribute__((packed)) {
        CUdeviceptr data;
        uint8_t amount, pad[3];
        uint32_t scale;
        uint64_t elements;
    } packed = {data, 7, {0}, 11, elements};
    size_t size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    MUST(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (elements == 4) MUST(cuMemAlloc(&before, 512));
    MUST(cuMemAlloc(&inside, 1000 * elements));
    CUdeviceptr target = inside + 800;
    void *parameters[] = {&data, &amount, &scale, &elements};
    void *to_inside[] = {bytes, &target};
    MUST(cuMemsetD32Async(data, (unsigned)elements, 16, stream));
    MUST(cuMemsetD2D32Async(copy, 64, 0, 4, 2, stream));
    MUST(cuLaunchKernel(add, (unsigned)elements, 1, 1, 16, 1, 1, 512, stream, parameters, NULL));
    MUST(cuEventRecord(fork, stream));
    MUST(cuStreamWaitEvent(side, fork, 0));
    MUST(cuLaunchKernel(wide, 1, 1, 1, 1, 1, 1, 0, side, to_inside, NULL));
    MUST(cuEventRecord(join, side));
    MUST(cuLaunchKernel(optioned, 1, 2, 1, 16, 1, 1, 0, stream, NULL, extra));
    MUST(cuStreamWaitEvent(stream, join, 0));
    MUST(cuEventRecordWithFlags(outside, stream, CU_EVENT_RECORD_EXTERNAL));
    MUST(cuMemcpyDtoDAsync(copy, data, 12, stream));
    MUST(cuMemcpyDtoDAsync(copy + 12, target, 4, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuEventDestroy(fork));
    MUST(cuEventDestroy(join));
    MUST(cuEventDestroy(outside));
    finish(graph, key, 0);
    MUST(cuGraphDestroy(graph));
    MUST(cuMemFree(inside));
    if (before) MUST(cuMemFree(before));
}

static void explicit_graph(CUcontext context) {
    if (restored("outer")) return;
    CUgraph outer, inner;
    CUgraphNode empty, first, second, child, last;
    CUdeviceptr other = data + 1024;
    uint32_t count = 4;
    void *arguments[] = {&copy, &data, &other, &count};
    CUDA_KERNEL_NODE_PARAMS launch = {0};
    launch.func = twice;
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;
    launch.blockDimX = 32;
    launch.kernelParams = arguments;
    CUDA_MEMSET_NODE_PARAMS set = {other, 0, 0x40, 1, 64, 1};
    CUgraphEdgeData programmatic = {
        CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {0}};
    CUkernelNodeAttrValue priority;
    memset(&priority, 0, sizeof priority);
    priority.priority = -1;
    MUST(cuGraphCreate(&inner, 0));
    MUST(cuGraphAddMemsetNode(&first, inner, NULL, 0, &set, context));
    MUST(cuGraphAddKernelNode(&second, inner, &first, 1, &launch));
    MUST(cuGraphKernelNodeSetAttribute(second, CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority));
    MUST(cuGraphAddKernelNode(&last, inner, NULL, 0, &launch));
    MUST(cuGraphAddDependencies_v2(inner, &second, &last, &programmatic, 1));
    MUST(cuGraphCreate(&outer, 0));
    MUST(cuGraphAddEmptyNode(&empty, outer, NULL, 0));
    MUST(cuGraphAddChildGraphNode(&child, outer, &empty, 1, inner));
    /* As torch does. */
    finish(outer, "outer",
           CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    MUST(cuGraphDestroy(inner));
    MUST(cuGraphDestroy(outer));
}

/* Graphs of one shape: other kernels, with and without a launch attribute. */
static void shaped_graph(const char *key, int priority) {
    if (restored(key)) return;
    CUgraph graph;
    CUgraphNode node;
    uint8_t bytes[48], amount = 2;
    uint32_t scale = 3;
    uint64_t elements = 4;
    memset(bytes, 1, sizeof bytes);
    void *of_add[] = {&copy, &amount, &scale, &elements};
    void *of_wide[] = {bytes, &copy};
    CUDA_KERNEL_NODE_PARAMS launch = {0};
    launch.func = priority ? add : wide;
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
    launch.kernelParams = priority ? of_add : of_wide;
    CUkernelNodeAttrValue value;
    memset(&value, 0, sizeof value);
    value.priority = priority;
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddKernelNode(&node, graph, NULL, 0, &launch));
    if (priority) MUST(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    finish(graph, key, 0);
    MUST(cuGraphDestroy(graph));
}

static void unnamed_graph(CUcontext context) {
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_MEMSET_NODE_PARAMS set = {copy, 0, 9, 4, 4, 1};
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    print_results("unnamed");
}

static void *image_of(const char *path) {
    static unsigned char image[1 << 22];
    size_t length = strlen(path);
    if (length > 3 && !strcmp(path + length - 3, ".so")) {
        void *kernels = dlopen(path, RTLD_NOW);
        return kernels ? dlsym(kernels, "kernels") : NULL;
    }
    FILE *file = fopen(path, "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return NULL;
    fclose(file);
    return image;
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    find_interface();
    CUcontext context = primary_context();
    void *image = image_of(arguments[1]);
    if (!image) return 2;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&data, 4096));
    MUST(cuMemAlloc(&copy, 4096));
    if (count < 3 || foundry.mode() != 2) load_kernels(image);
    capture_step("4", 4);
    capture_step("2", 2);
    capture_step("1", 1);
    unnamed_graph(context);
    explicit_graph(context);
    shaped_graph("shape-1", -2);
    shaped_graph("shape-2", 0);
    shaped_graph("shape-3", -1);
    if (!library && !strcmp(arguments[2], "late")) load_kernels(image);
    if (foundry.commit()) return 3;
    if (library) {
        for (int index = 0; index < 3; ++index) MUST(cuModuleUnload(modules[index]));
        MUST(cuLibraryUnload(library));
    }
    return 0;
}
