/* Sixteen threads allocate, capture in thread-local mode, instantiate, launch and free at once, each with values of its
 * own; what they compute is checked. In a restore each takes its last graph from the archive if it can.
 * argv[1] is the image, argv[2] how many rounds. Says how many graphs the archive gave. */
#define _GNU_SOURCE
#include "interface.h"
#include "program.h"

#include <pthread.h>

enum { thread_count = 16, words = 8 };

static CUcontext context;
static CUfunction add;
static CUdeviceptr buffers[thread_count], copies[thread_count]; /* made in order: a restore finds them */
static int rounds;
static int restored;

static void expect(const char *what, CUdeviceptr address, uint32_t value) {
    uint32_t got[words];
    MUST(cuMemcpyDtoH(got, address, sizeof got));
    for (int index = 0; index < words; ++index)
        if (got[index] != value) {
            SAY("wrong %s: %u instead of %u", what, got[index], value);
            exit(1);
        }
}

static CUgraphExec capture(CUstream stream, CUdeviceptr data, CUdeviceptr copy, uint32_t value, const char *key) {
    CUgraph graph;
    CUgraphExec exec;
    uint8_t amount = 1;
    uint32_t scale = value;
    uint64_t elements = words;
    void *parameters[] = {&data, &amount, &scale, &elements};
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuMemsetD32Async(data, value, words, stream));
    MUST(cuLaunchKernel(add, 1, 1, 1, words, 1, 1, 0, stream, parameters, NULL));
    MUST(cuMemcpyDtoDAsync(copy, data, words * sizeof(uint32_t), stream));
    MUST(cuStreamEndCapture(stream, &graph));
    if (key) foundry.begin("storm", key);
    MUST(cuGraphInstantiate(&exec, graph, 0));
    if (key) foundry.end(NULL);
    MUST(cuGraphDestroy(graph));
    return exec;
}

static void churn(CUstream stream, unsigned *seed) {
    CUdeviceptr small, large, ordered;
    *seed = *seed * 1103515245 + 12345;
    MUST(cuMemAlloc(&small, 4 + (*seed >> 8) % 5000));
    MUST(cuMemAlloc(&large, (1 << 20) + (*seed >> 9) % (3 << 20)));
    MUST(cuMemAllocAsync(&ordered, 4096, stream));
    MUST(cuMemsetD32Async(ordered, *seed, words, stream));
    MUST(cuMemsetD32(large, *seed + 1, words));
    expect("ordered", ordered, *seed);
    expect("large", large, *seed + 1);
    MUST(cuMemFree(small));
    MUST(cuMemFreeAsync(ordered, stream));
    MUST(cuMemFree(large));
}

static void *storm(void *number) {
    unsigned index = (unsigned)(uintptr_t)number, seed = index * 7919 + 1;
    CUstream stream;
    CUdeviceptr data = buffers[index], copy = copies[index];
    char key[16];
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < rounds; ++round) {
        uint32_t value = 1 + index * 1000 + (uint32_t)round;
        CUgraphExec exec = capture(stream, data, copy, value, NULL);
        for (int launches = 0; launches < 3; ++launches) MUST(cuGraphLaunch(exec, stream));
        MUST(cuStreamSynchronize(stream));
        expect("graph", copy, 2 * value);
        churn(stream, &seed);
        MUST(cuGraphExecDestroy(exec));
    }
    snprintf(key, sizeof key, "%u", index);
    foundry_graph *found = foundry.mode() == 2 ? foundry.find("storm", key) : NULL;
    CUgraphExec exec = NULL;
    if (found && !foundry.wait(found)) {
        __atomic_fetch_add(&restored, 1, __ATOMIC_RELAXED);
        MUST(foundry.launch(found, stream));
    } else {
        exec = capture(stream, data, copy, 7 + index, key);
        MUST(cuGraphLaunch(exec, stream));
    }
    MUST(cuStreamSynchronize(stream));
    expect("last graph", copy, 2 * (7 + index));
    if (exec) MUST(cuGraphExecDestroy(exec));
    MUST(cuMemFree(data));
    MUST(cuMemFree(copy));
    MUST(cuStreamDestroy(stream));
    return NULL;
}

int main(int count, char **arguments) {
    static unsigned char image[1 << 22];
    CUlibrary library;
    CUkernel kernel;
    pthread_t threads[thread_count];
    if (count < 3) return 2;
    FILE *file = fopen(arguments[1], "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return 2;
    fclose(file);
    rounds = atoi(arguments[2]);
    find_interface();
    context = primary_context();
    MUST(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "add_constant"));
    MUST(cuKernelGetFunction(&add, kernel));
    for (int index = 0; index < thread_count; ++index) {
        MUST(cuMemAlloc(&buffers[index], 4096 * (size_t)(index + 1)));
        MUST(cuMemAlloc(&copies[index], 4096 * (size_t)(index + 1)));
    }
    for (uintptr_t index = 0; index < thread_count; ++index)
        pthread_create(&threads[index], NULL, storm, (void *)index);
    for (int index = 0; index < thread_count; ++index) pthread_join(threads[index], NULL);
    foundry.commit();
    SAY("restored %d", restored);
    return 0;
}
