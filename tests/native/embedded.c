/* An engine that restores its graphs by itself: it links libfoundry_restore.a and takes the driver's functions from it.
 * argv[1] is the image of its kernels, argv[2] a restore image or `none`, argv[3] a folder for a report. Captures what
 * it does not get back, and says what the graphs compute. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <foundry_embed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(name) #name
#define EXPORTED(name) TEXT(name)
#define DRIVER(name) ((__typeof__(&name))foundry_embed_entry(EXPORTED(name)))
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        int result = (call);                                                                                           \
        if (result) fprintf(stderr, "%s: %d %s\n", #call, result, foundry_reason()), exit(1);                          \
    } while (0)

static unsigned char kernels[1 << 22];

static CUgraphExec capture(CUfunction add, CUstream stream, CUdeviceptr data, const char *key) {
    CUgraph graph;
    CUgraphExec exec;
    uint8_t amount = (uint8_t)atoi(key);
    uint32_t scale = 3;
    uint64_t elements = 4;
    void *parameters[] = {&data, &amount, &scale, &elements};
    MUST(DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(DRIVER(cuMemsetD32Async)(data, 1, 4, stream));
    MUST(DRIVER(cuLaunchKernel)(add, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
    MUST(DRIVER(cuStreamEndCapture)(stream, &graph));
    MUST(foundry_graph_begin("steps", key));
    MUST(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    MUST(foundry_graph_end("add"));
    MUST(DRIVER(cuGraphDestroy)(graph));
    return exec;
}

static void run_step(CUfunction add, CUstream stream, CUdeviceptr data, const char *key) {
    uint32_t got[4];
    foundry_graph *graph = foundry_graph_find("steps", key);
    if (graph && foundry_graph_wait(graph)) graph = NULL;
    const char *how = graph ? "restored" : "captured";
    if (graph)
        MUST(foundry_graph_launch(graph, stream));
    else
        MUST(DRIVER(cuGraphLaunch)(capture(add, stream, data, key), stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    MUST(DRIVER(cuMemcpyDtoH)(got, data, sizeof got));
    printf("%s %s %u %u %u %u\n", key, how, got[0], got[1], got[2], got[3]);
}

int main(int count, char **arguments) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction add;
    CUstream stream;
    CUdeviceptr data;
    FILE *file = count > 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file || !fread(kernels, 1, sizeof kernels, file)) return 2;
    fclose(file);
    printf("before %s\n", foundry_embed_entry("cuInit") ? "a driver" : foundry_reason());
    if (strcmp(arguments[2], "none")) {
        int answer = foundry_embed_restore(arguments[2], count > 3 ? arguments[3] : NULL);
        if (answer) printf("embed %d %s\n", answer, foundry_reason());
    }
    if (!dlopen("libcuda.so.1", RTLD_NOW)) return 2;
    MUST(DRIVER(cuInit)(0));
    MUST(DRIVER(cuDeviceGet)(&device, 0));
    MUST(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
    MUST(DRIVER(cuCtxSetCurrent)(context));
    printf("mode %d", foundry_mode());
    printf(" %s\n", foundry_reason());
    printf("again %d\n", foundry_embed_restore("later", NULL));
    MUST(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    MUST(DRIVER(cuMemAlloc)(&data, 4096));
    MUST(DRIVER(cuModuleLoadData)(&module, kernels));
    MUST(DRIVER(cuModuleGetFunction)(&add, module, "add_constant"));
    run_step(add, stream, data, "2");
    run_step(add, stream, data, "5");
    printf("commit %d\n", foundry_commit());
    return 0;
}
