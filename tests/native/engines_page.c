/* An engine made of the examples of foundry/native/ENGINES.md, which page.h holds: labelled graphs, graphs by key,
 * parity.
 *
 *     engines_page IMAGE labels|keyed|dedicated|parity
 *
 * A pass adds `batch` to as many numbers of its input, once for each chunk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#include <cuda.h>

#define NUMBERS 8
#define BUFFERS 2

static CUfunction kernel;
static CUdeviceptr buffers[BUFFERS];
static CUstream stream;

static void check(int result, const char *what) {
    if (!result) return;
    fprintf(stderr, "%s: %d\n", what, result);
    exit(10);
}

static int launch(const struct pass *pass, void *on) {
    CUdeviceptr numbers = pass->input;
    unsigned char amount = (unsigned char)pass->batch;
    uint32_t scale = 1;
    uint64_t count = pass->batch;
    void *parameters[4];
    unsigned chunk;
    int result = 0;
    parameters[0] = &numbers;
    parameters[1] = &amount;
    parameters[2] = &scale;
    parameters[3] = &count;
    for (chunk = 0; chunk < pass->chunks && !result; chunk++)
        result = (int)cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, (CUstream)on, parameters, NULL);
    return result;
}

static struct pass pass_of(unsigned batch, unsigned chunks, unsigned buffer) {
    struct pass pass;
    pass.batch = batch;
    pass.chunks = chunks;
    pass.input = buffers[buffer];
    pass.launch = launch;
    return pass;
}

static void warm_up(const char *batch) {
    const struct pass pass = pass_of((unsigned)atoi(batch), 1, 0);
    check(launch(&pass, stream), "a warm-up");
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static void *capture(const char *batch) {
    const struct pass pass = pass_of((unsigned)atoi(batch), 1, 0);
    CUgraph graph;
    CUgraphExec exec;
    check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    check(launch(&pass, stream), "a captured pass");
    check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    check(cuGraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
    check(cuGraphDestroy(graph), "cuGraphDestroy");
    return exec;
}

static void clear(void) {
    unsigned i;
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    for (i = 0; i < BUFFERS; i++) check(cuMemsetD8(buffers[i], 0, NUMBERS * 4), "cuMemsetD8");
}

static void tell(unsigned buffer) {
    uint32_t found[NUMBERS];
    unsigned i;
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    check(cuMemcpyDtoH(found, buffers[buffer], sizeof found), "cuMemcpyDtoH");
    for (i = 0; i < NUMBERS; i++) printf("%u%c", found[i], i + 1 < NUMBERS ? ' ' : '\n');
}

static int labels(void) {
    static const char *const batches[] = {"8", "4", "2"};
    void *execs[3];
    unsigned i;
    for (i = 0; i < 3; i++) execs[i] = exec_for(batches[i], "layout 1", warm_up, capture);
    ready_to_serve();
    clear();
    for (i = 0; i < 3; i++) check(cuGraphLaunch((CUgraphExec)execs[i], stream), "cuGraphLaunch");
    tell(0);
    return 0;
}

static int keyed(unsigned dedicated) {
    foundry_keyed *graphs = open_graphs(stream, "build 1", dedicated);
    foundry_keyed_counts counts;
    struct pass passes[2];
    unsigned i;
    if (!graphs) {
        fprintf(stderr, "%s\n", foundry_keyed_reason(NULL));
        return 11;
    }
    passes[0] = pass_of(4, 2, 0);
    passes[1] = pass_of(2, 1, 0);
    check(make_ready(graphs, passes, 2), "make_ready");
    clear();
    for (i = 0; i < 8; i++) {
        struct pass pass = pass_of(i < 4 ? 4 : 2, i < 4 ? 2 : 1, i / 2 % 2);
        check(run_pass(graphs, &pass), "run_pass");
    }
    counts = foundry_keyed_count(graphs);
    printf("captured %d updated %d replayed %d restored %d held %d\n", (int)counts.captured, (int)counts.updated,
           (int)counts.replayed, (int)counts.restored, (int)counts.held);
    tell(0);
    tell(1);
    foundry_keyed_close(graphs);
    return 0;
}

static struct pass begun;

static int begin_round(void *user, unsigned round, uint64_t *values) {
    static const unsigned inputs[] = {0, 0, 0, 1};
    (void)user;
    begun = pass_of(2 + round / 4 % 2, 1 + round / 8, inputs[round % 4]);
    key_of(&begun, values);
    return 0;
}

static int parity(void) {
    foundry_keyed *graphs = open_graphs(stream, "build 1", 0);
    foundry_parity_span state[BUFFERS];
    unsigned i;
    int verdict;
    for (i = 0; i < BUFFERS; i++) {
        state[i].name = "numbers";
        state[i].address = buffers[i];
        state[i].bytes = NUMBERS * 4;
    }
    verdict = compare_rounds(graphs, state, BUFFERS, 16, begin_round, record, &begun);
    foundry_keyed_close(graphs);
    return verdict;
}

int main(int count, char **words) {
    static unsigned char image[1 << 20];
    CUdevice device;
    CUcontext context;
    CUmodule module;
    FILE *file = count == 3 ? fopen(words[1], "rb") : NULL;
    unsigned i;
    if (!file || !fread(image, 1, sizeof image, file)) return 12;
    fclose(file);
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuModuleLoadData(&module, image), "cuModuleLoadData");
    check(cuModuleGetFunction(&kernel, module, "add_constant"), "cuModuleGetFunction");
    for (i = 0; i < BUFFERS; i++) check(cuMemAlloc(&buffers[i], NUMBERS * 4), "cuMemAlloc");
    clear();
    if (!strcmp(words[2], "labels")) return labels();
    if (!strcmp(words[2], "parity")) return parity();
    return keyed(strcmp(words[2], "dedicated") ? 0 : 2);
}
