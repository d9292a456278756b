/* A graph with every kind of node that can be rebuilt, captured over two streams, then changed and launched. argv[1] is
 * the image. */
#include "program.h"

static void *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    char *data = malloc(1 << 22);
    size_t size = fread(data, 1, 1 << 22, file);
    fclose(file);
    return realloc(data, size);
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    primary_context();
    void *image = read_file(arguments[1]);
    CUlibrary library;
    CUmodule module;
    CUkernel kernel;
    CUfunction as_function, function;
    MUST(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "add_constant"));
    MUST(cuKernelGetFunction(&as_function, kernel));
    CUjit_option options[] = {CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {(void *)32, (void *)0};
    MUST(cuModuleLoadDataEx(&module, image, 2, options, values));
    MUST(cuModuleGetFunction(&function, module, "add_constant"));
    CUdeviceptr counter;
    MUST(cuModuleGetGlobal(&counter, NULL, module, "counter"));
    MUST(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, kernel, 0));

    CUdeviceptr data, copy;
    MUST(cuMemAlloc(&data, 4096));
    MUST(cuMemAlloc(&copy, 4096));
    CUstream stream, side;
    CUevent fork, join;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));

    uint8_t amount = 3;
    uint32_t scale = 5;
    uint64_t elements = 16;
    void *parameters[] = {&data, &amount, &scale, &elements};
    struct __attribute__((packed)) {
        CUdeviceptr data;
        uint8_t amount, pad[3];
        uint32_t scale;
        uint64_t elements;
    } packed = {data, 7, {0}, 11, 16};
    size_t packed_size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
                     CU_LAUNCH_PARAM_END};

    CUgraph graph;
    CUdeviceptr inside;
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemAlloc(&inside, 1000));
    MUST(cuMemsetD32Async(data, 1, 16, stream));
    MUST(cuLaunchKernel(as_function, 1, 1, 1, 16, 1, 1, 0, stream, parameters, NULL));
    MUST(cuEventRecord(fork, stream));
    MUST(cuStreamWaitEvent(side, fork, 0));
    MUST(cuLaunchKernel(function, 1, 2, 1, 16, 1, 1, 0, side, NULL, extra));
    MUST(cuEventRecord(join, side));
    MUST(cuStreamWaitEvent(stream, join, 0));
    MUST(cuMemcpyDtoDAsync(copy, data, 64, stream));
    MUST(cuEventRecordWithFlags(join, stream, CU_EVENT_RECORD_EXTERNAL));
    MUST(cuStreamEndCapture(stream, &graph));
    SAY("inside %llx", inside);

    CUgraph outer;
    CUgraphNode child, empty;
    CUgraphExec exec, second;
    MUST(cuGraphCreate(&outer, 0));
    MUST(cuGraphAddEmptyNode(&empty, outer, NULL, 0));
    MUST(cuGraphAddChildGraphNode(&child, outer, &empty, 1, graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphInstantiate(&second, outer, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuGraphLaunch(second, stream));
    MUST(cuStreamSynchronize(stream));

    CUgraphExecUpdateResultInfo info;
    MUST(cuGraphExecUpdate(exec, graph, &info));
    MUST(cuGraphExecUpdate(exec, graph, &info));
    MUST(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2048, kernel, 0));
    CUgraphExec third;
    MUST(cuGraphInstantiate(&third, graph, 0));
    MUST(cuGraphExecDestroy(third));
    uint32_t result[16];
    MUST(cuMemcpyDtoH(result, copy, sizeof result));
    SAY("result %u", result[0]);
    SAY("data %llx", data);
    MUST(cuGraphDestroy(graph));
    MUST(cuModuleUnload(module));
    MUST(cuLibraryUnload(library));
    return 0;
}
