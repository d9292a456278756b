/* Two threads allocate memory of one size, and a graph reads both. argv[1]: which comes first, ab or ba. argv[2]:
 *   at-once   both live while they allocate; nothing but argv[1] puts them in order
 *   joined    the first has ended before the second begins
 *   sizes     as at-once, but each takes a size of its own
 *   around    as at-once, and the second takes more before it, so that both threads' memory lies where it lay */
#define _GNU_SOURCE
#include "interface.h"
#include "program.h"

#include <pthread.h>
#include <time.h>

enum { large = 4 << 20 };

static CUcontext context;
static CUdeviceptr memory[2], result;
static const char *order, *kind;
static pthread_barrier_t both;

static void turn(int number) {
    size_t size = strcmp(kind, "sizes") ? (size_t)large : (size_t)large * (1 + (size_t)number);
    uint32_t values[2] = {(uint32_t)number + 1, (uint32_t)number + 1};
    CUdeviceptr small;
    MUST(cuMemAlloc(&memory[number], size));
    MUST(cuMemcpyHtoD(memory[number], values, sizeof values));
    MUST(cuCtxSynchronize());
    if (!strcmp(kind, "around")) MUST(cuMemAlloc(&small, 512 * (1 + (size_t)number)));
}

static void *race(void *at) {
    int number = (int)(uintptr_t)at;
    MUST(cuCtxSetCurrent(context));
    pthread_barrier_wait(&both);
    for (int step = 0; step < 2; ++step) {
        if (order[step] == 'a' + number) turn(number);
        pthread_barrier_wait(&both);
    }
    return NULL;
}

static void *alone(void *at) {
    MUST(cuCtxSetCurrent(context));
    turn((int)(uintptr_t)at);
    return NULL;
}

static void print_result(void) {
    uint32_t got[4];
    MUST(cuCtxSynchronize());
    MUST(cuMemcpyDtoH(got, result, sizeof got));
    SAY("result %u %u %u %u", got[0], got[1], got[2], got[3]);
}

static int restored(CUstream stream) {
    if (foundry.mode() != 2) return 0;
    foundry_graph *graph = foundry.find("racers", "both");
    if (!graph || foundry.wait(graph)) {
        fprintf(stderr, "not restored: %s\n", foundry.reason());
        return 0;
    }
    if (foundry.launch(graph, stream)) exit(3);
    return 1;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    order = arguments[1];
    kind = arguments[2];
    find_interface();
    context = primary_context();
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 2);
    MUST(cuMemAlloc(&result, 4096));
    if (!strcmp(kind, "joined"))
        for (int step = 0; step < 2; ++step) {
            pthread_create(&threads[0], NULL, alone, (void *)(uintptr_t)(order[step] - 'a'));
            pthread_join(threads[0], NULL);
        }
    else
        for (uintptr_t number = 0; number < 2; ++number) pthread_create(&threads[number], NULL, race, (void *)number);
    if (strcmp(kind, "joined"))
        for (int number = 0; number < 2; ++number) pthread_join(threads[number], NULL);
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (!restored(stream)) {
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        MUST(cuMemcpyDtoDAsync(result, memory[0], 8, stream));
        MUST(cuMemcpyDtoDAsync(result + 8, memory[1], 8, stream));
        MUST(cuStreamEndCapture(stream, &graph));
        if (foundry.begin("racers", "both")) return 3;
        MUST(cuGraphInstantiate(&exec, graph, 0));
        if (foundry.end(NULL)) return 3;
        MUST(cuGraphLaunch(exec, stream));
    }
    print_result();
    return foundry.commit() ? 3 : 0;
}
