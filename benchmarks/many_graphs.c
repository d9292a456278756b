/* Captures many graphs, or has them from an archive, and tells how long it stood still for them.
 *
 *     many_graphs IMAGE GRAPHS NODES [floor | last]
 *
 * Prints one line of JSON: how many graphs were captured and restored, the seconds until the first graph could be
 * launched and until all could be, what of that was instantiating, and the seconds that launching each once took.
 * With `floor`, only the seconds that the driver takes to instantiate a graph so often on two threads: nobody who gives
 * each graph an exec of its own can do with less. With `last`, the last graph is asked for before all others, and what
 * asking and its first launch take beyond a second launch is told, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "driver.h"

#define X(name, symbol) static __typeof__(&symbol) driver_##name;
FUNCTIONS(X)
#undef X

static int (*mode)(void), (*commit)(void), (*wait_for)(void *), (*end_label)(const char *);
static int (*begin_label)(const char *, const char *);
static void *(*look)(const char *, const char *), *(*executable_of)(void *);

static void bind(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) exit(1);
#define X(name, symbol)                                                                                                \
    driver_##name = (__typeof__(driver_##name))dlsym(library, #symbol);                                                \
    if (!driver_##name) exit(1);
    FUNCTIONS(X)
#undef X
#define X(pointer, name) pointer = (__typeof__(pointer))dlsym(RTLD_DEFAULT, name);
    X(mode, "foundry_mode")
    X(commit, "foundry_commit")
    X(wait_for, "foundry_graph_wait")
    X(begin_label, "foundry_graph_begin")
    X(end_label, "foundry_graph_end")
    X(look, "foundry_graph_find")
    X(executable_of, "foundry_graph_exec")
#undef X
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static CUstream stream;
static CUfunction kernel;
static CUdeviceptr memory;
static double instantiating;

/* Parameters like those of real kernels: a pointer, sizes that go by the graph, constants, and an address of the stack
 * that no kernel needs. */
static CUgraph capture(int index, int nodes) {
    CUgraph graph;
    MUST(driver_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int node = 0; node < nodes; ++node) {
        uint64_t words[8] = {memory + 256 * (uint64_t)(node % 64), (uint64_t)index + 1, (uint64_t)node, 1, 0, 4096};
        words[6] = (uint64_t)(uintptr_t)words;
        void *parameters[8];
        for (int word = 0; word < 8; ++word) parameters[word] = &words[word];
        unsigned blocks = (unsigned)index + 1;
        MUST(driver_cuLaunchKernel(kernel, blocks, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
    }
    MUST(driver_cuStreamEndCapture(stream, &graph));
    return graph;
}

static CUgraphExec captured(int index, int nodes, const char *key) {
    CUgraph graph = capture(index, nodes);
    CUgraphExec executable;
    if (mode) begin_label("many", key);
    double begin = now();
    MUST(driver_cuGraphInstantiateWithFlags(&executable, graph, 0));
    instantiating += now() - begin;
    if (mode) end_label(NULL);
    MUST(driver_cuGraphDestroy(graph));
    return executable;
}

enum { FLOOR_THREADS = 2 };
static CUcontext context;
static int floor_each;

static void *instantiate(void *graph) {
    MUST(driver_cuCtxSetCurrent(context));
    for (int index = 0; index < floor_each; ++index) {
        CUgraphExec executable;
        MUST(driver_cuGraphInstantiateWithFlags(&executable, (CUgraph)graph, 0));
    }
    return NULL;
}

static int print_floor(int graphs, int nodes) {
    CUgraph held[FLOOR_THREADS];
    pthread_t threads[FLOOR_THREADS];
    floor_each = graphs / FLOOR_THREADS;
    for (int at = 0; at < FLOOR_THREADS; ++at) held[at] = capture(at, nodes);
    double begin = now();
    for (int at = 0; at < FLOOR_THREADS; ++at) MUST(pthread_create(&threads[at], NULL, instantiate, held[at]));
    for (int at = 0; at < FLOOR_THREADS; ++at) MUST(pthread_join(threads[at], NULL));
    printf("{\"floor\": %.9f}\n", now() - begin);
    return 0;
}

static double launched(CUgraphExec executable) {
    double begin = now();
    MUST(driver_cuGraphLaunch(executable, stream));
    MUST(driver_cuStreamSynchronize(stream));
    return now() - begin;
}

/* Seconds until the last graph was launched once, beyond a second launch; negative if there is none. */
static double ask_for_last(int graphs) {
    char key[16];
    snprintf(key, sizeof key, "%d", graphs - 1);
    double begin = now();
    void *last = look("many", key);
    if (!last || wait_for(last)) return -1;
    CUgraphExec executable = executable_of(last);
    double waited = now() - begin;
    return waited + launched(executable) - launched(executable);
}

int main(int count, char **arguments) {
    static char image[1 << 20];
    CUdevice device;
    CUmodule module;
    int only_floor = count == 5 && !strcmp(arguments[4], "floor"), last_first = count == 5 && !only_floor;
    if (count < 4 || count > 5 || (last_first && strcmp(arguments[4], "last") != 0)) return 2;
    FILE *file = fopen(arguments[1], "rb");
    if (!file || !fread(image, 1, sizeof image - 1, file)) return 2;
    int graphs = atoi(arguments[2]), nodes = atoi(arguments[3]), restored = 0;
    CUgraphExec *executables = calloc((size_t)graphs, sizeof *executables);
    void **found = calloc((size_t)graphs, sizeof *found);
    if (!executables || !found) return 2;
    bind();
    MUST(driver_cuInit(0));
    MUST(driver_cuDeviceGet(&device, 0));
    MUST(driver_cuDevicePrimaryCtxRetain(&context, device));
    MUST(driver_cuCtxSetCurrent(context));
    MUST(driver_cuModuleLoadData(&module, image));
    MUST(driver_cuModuleGetFunction(&kernel, module, "nothing"));
    MUST(driver_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver_cuMemAlloc(&memory, 1 << 20));
    if (only_floor) return print_floor(graphs, nodes);
    int restoring = mode && mode() == 2;
    double last = restoring && last_first ? ask_for_last(graphs) : -1;
    double begin = now(), first = 0;
    for (int index = 0; index < graphs; ++index) {
        char key[16];
        snprintf(key, sizeof key, "%d", index);
        if (restoring) found[index] = look("many", key);
        if (found[index] && !wait_for(found[index])) {
            executables[index] = executable_of(found[index]);
            ++restored;
        } else {
            executables[index] = captured(index, nodes, key);
        }
        if (index == 0) first = now() - begin;
    }
    double all = now() - begin;
    if (mode) commit();
    begin = now();
    for (int index = 0; index < graphs; ++index) MUST(driver_cuGraphLaunch(executables[index], stream));
    MUST(driver_cuStreamSynchronize(stream));
    printf("{\"captured\": %d, \"restored\": %d, \"first\": %.9f, \"all\": %.9f, \"instantiating\": %.9f, "
           "\"launching\": %.9f, \"last\": %.9f}\n",
           graphs - restored, restored, first, all, instantiating, now() - begin, last);
    free(executables);
    free(found);
    return 0;
}
