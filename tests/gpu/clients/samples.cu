/* Graphs as the CUDA samples make them: the runtime linked in, per-thread default streams, threads that capture at the
 * same time, streams that fork and join, nodes set by hand, updates, memory and host functions inside graphs.
 *
 * Each pass is a named graph, taken from the archive where there is one, and run on other inputs each round, through
 * its graph and launch by launch. Says `NAME ROUND DIGEST` on stdout; what became of each graph, as JSON on stderr.
 * Ends with 1 where a graph gives other bytes than its launches.
 *
 *   nvcc -cudart static --default-stream per-thread -I "$(foundry --include)" -o samples samples.cu
 *
 * Without a toolkit it is compiled against `stand_in/cuda_runtime.h`, for the simulator. */
#include <cuda_runtime.h>
#include <foundry.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4096u
#define BYTES (COUNT * sizeof(uint32_t))
#define LANES 3
#define ROUNDS 4
#define SET "samples"

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t must_result = (call);                                                                              \
        if (must_result != cudaSuccess) {                                                                              \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(must_result));            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

__global__ void mix(uint32_t *data, uint32_t count, uint32_t by) {
    uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) data[index] = (data[index] ^ data[index] >> 15) * 2654435761u + by;
}

__global__ void combine(uint32_t *out, const uint32_t *one, const uint32_t *other, uint32_t count) {
    uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) out[index] += one[index] + 3 * other[count - 1 - index];
}

#ifndef __CUDACC__
const struct stand_in_kernel stand_in_kernels[] = {{(const void *)mix, "mix"}, {(const void *)combine, "combine"}};
#endif

struct pass;
struct work {
    const char *name;
    void (*record)(struct pass *); /* puts the pass on its stream, by launches */
    uint32_t by, next;             /* a value that launches take; another one from the middle round on, if not 0 */
};

struct pass : work {
    uint32_t *input, *side, *output;
    cudaStream_t stream, beside;
    cudaEvent_t fork, join;
    cudaGraphExec_t exec;
    char layout[128];
    const char *became, *update;
    int refusal; /* a cudaGraphExecUpdateResult */
    int host_calls;
    uint64_t digests[ROUNDS];
};

static pthread_barrier_t together;

static void launch_mix(uint32_t *data, uint32_t by, cudaStream_t stream) {
    uint32_t count = COUNT;
    void *arguments[] = {&data, &count, &by};
    MUST(cudaLaunchKernel((const void *)mix, dim3(COUNT / 256), dim3(256), arguments, 0, stream));
}

static void launch_combine(struct pass *pass, uint32_t *other) {
    uint32_t count = COUNT;
    void *arguments[] = {&pass->output, &pass->input, &other, &count};
    MUST(cudaLaunchKernel((const void *)combine, dim3(COUNT / 256), dim3(256), arguments, 0, pass->stream));
}

/* Two streams: one prepares what the other takes. */
static void forked(struct pass *pass) {
    MUST(cudaEventRecord(pass->fork, pass->stream));
    MUST(cudaStreamWaitEvent(pass->beside, pass->fork, 0));
    MUST(cudaMemcpyAsync(pass->side, pass->input, BYTES, cudaMemcpyDeviceToDevice, pass->beside));
    launch_mix(pass->side, pass->by, pass->beside);
    MUST(cudaEventRecord(pass->join, pass->beside));
    MUST(cudaMemsetAsync(pass->output, 1, BYTES, pass->stream));
    MUST(cudaStreamWaitEvent(pass->stream, pass->join, 0));
    launch_combine(pass, pass->side);
}

/* Takes memory for itself, and gives it back. */
static void with_memory(struct pass *pass) {
    void *taken;
    MUST(cudaMallocAsync(&taken, BYTES, pass->stream));
    MUST(cudaMemcpyAsync(taken, pass->input, BYTES, cudaMemcpyDeviceToDevice, pass->stream));
    launch_mix((uint32_t *)taken, pass->by, pass->stream);
    MUST(cudaMemsetAsync(pass->output, 0, BYTES, pass->stream));
    launch_combine(pass, (uint32_t *)taken);
    MUST(cudaFreeAsync(taken, pass->stream));
}

static void CUDART_CB count_call(void *calls) {
    ++*(int *)calls;
}

static void with_host(struct pass *pass) {
    MUST(cudaLaunchHostFunc(pass->stream, count_call, &pass->host_calls));
    forked(pass);
}

static void capture_begin(struct pass *pass) {
    MUST(cudaStreamBeginCapture(pass->stream, cudaStreamCaptureModeThreadLocal));
}

static cudaGraph_t capture_end(struct pass *pass) {
    cudaGraph_t graph;
    pass->record(pass);
    MUST(cudaStreamEndCapture(pass->stream, &graph));
    return graph;
}

/* The same pass node by node; its kernel is set to another value once it stands. */
static cudaGraph_t by_hand(struct pass *pass) {
    cudaGraph_t graph;
    cudaGraphNode_t copy, last, nodes[2];
    uint32_t count = COUNT, wrong = pass->by + 1;
    void *mixing[] = {&pass->side, &count, &wrong}, *combining[] = {&pass->output, &pass->input, &pass->side, &count};
    struct cudaKernelNodeParams kernel = {};
    struct cudaMemsetParams fill = {};
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, pass->side, pass->input, BYTES, cudaMemcpyDeviceToDevice));
    kernel.func = (void *)mix;
    kernel.gridDim = dim3(COUNT / 256);
    kernel.blockDim = dim3(256);
    kernel.kernelParams = mixing;
    MUST(cudaGraphAddKernelNode(&nodes[0], graph, &copy, 1, &kernel));
    mixing[2] = &pass->by;
    MUST(cudaGraphKernelNodeSetParams(nodes[0], &kernel));
    fill.dst = pass->output;
    fill.value = 1;
    fill.elementSize = 1;
    fill.width = BYTES;
    fill.height = 1;
    MUST(cudaGraphAddMemsetNode(&nodes[1], graph, NULL, 0, &fill));
    kernel.func = (void *)combine;
    kernel.kernelParams = combining;
    MUST(cudaGraphAddKernelNode(&last, graph, nodes, 2, &kernel));
    return graph;
}

/* What the graph was made for: the archive's is taken if it was made for the same. */
static void describe(struct pass *pass) {
    uint64_t base = foundry_range_base(0);
    snprintf(pass->layout, sizeof pass->layout, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIu32,
             (uint64_t)(uintptr_t)pass->input - base, (uint64_t)(uintptr_t)pass->side - base,
             (uint64_t)(uintptr_t)pass->output - base, pass->by);
}

static void look_up(struct pass *pass) {
    foundry_graph *kept = foundry_graph_find(SET, pass->name);
    const char *layout = kept ? foundry_graph_metadata(kept) : NULL;
    describe(pass);
    pass->became = "captured";
    if (kept && (!layout || strcmp(layout, pass->layout))) {
        foundry_graph_give_up(kept, "made for another layout");
    } else if (kept && foundry_graph_wait(kept) == FOUNDRY_OK) {
        pass->exec = (cudaGraphExec_t)foundry_graph_exec(kept);
        pass->became = "restored";
    }
}

static void instantiate(struct pass *pass, cudaGraph_t graph) {
    foundry_graph_begin(SET, pass->name);
    MUST(cudaGraphInstantiate(&pass->exec, graph, 0));
    foundry_graph_end(pass->layout);
    MUST(cudaGraphDestroy(graph));
}

/* The exec for the next value. One that goes into an archive stays as it is, unless the pass is there to be refused. */
static void change(struct pass *pass) {
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t graph;
    int keep = foundry_mode() == FOUNDRY_CAPTURE && strcmp(pass->name, "updated");
    pass->by = pass->next;
    capture_begin(pass);
    graph = capture_end(pass);
    pass->update = ", updated in place";
    if (keep || cudaGraphExecUpdate(pass->exec, graph, &info) != cudaSuccess) {
        (void)cudaGetLastError();
        pass->update = keep ? ", another beside it" : ", not updated";
        pass->refusal = keep ? 0 : (int)info.result;
        MUST(cudaGraphInstantiate(&pass->exec, graph, 0));
    }
    MUST(cudaGraphDestroy(graph));
}

static void fill(uint32_t *values, const struct pass *pass, int round) {
    uint32_t state = 2166136261u + (uint32_t)round * 7919u;
    for (const char *letter = pass->name; *letter; ++letter) state = (state ^ (uint32_t)*letter) * 16777619u;
    for (uint32_t index = 0; index < COUNT; ++index) values[index] = state = state * 1664525u + 1013904223u;
}

static void run_rounds(struct pass *pass) {
    uint32_t *host = (uint32_t *)malloc(3 * BYTES), *through_graph = host + COUNT, *by_launch = through_graph + COUNT;
    pass->host_calls = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        uint64_t digest = 14695981039346656037u;
        if (pass->next && round == ROUNDS / 2) change(pass);
        fill(host, pass, round);
        for (int turn = 0; turn < 2; ++turn) {
            MUST(cudaMemcpyAsync(pass->input, host, BYTES, cudaMemcpyHostToDevice, pass->stream));
            MUST(cudaMemsetAsync(pass->output, 0x55, BYTES, pass->stream));
            if (turn)
                pass->record(pass);
            else
                MUST(cudaGraphLaunch(pass->exec, pass->stream));
            MUST(cudaMemcpyAsync(turn ? by_launch : through_graph, pass->output, BYTES, cudaMemcpyDeviceToHost,
                                 pass->stream));
            MUST(cudaStreamSynchronize(pass->stream));
        }
        if (memcmp(through_graph, by_launch, BYTES)) {
            fprintf(stderr, "%s, round %d: the graph gives other bytes than its launches\n", pass->name, round);
            exit(1);
        }
        for (size_t index = 0; index < BYTES; ++index)
            digest = (digest ^ ((unsigned char *)through_graph)[index]) * 1099511628211u;
        pass->digests[round] = digest;
    }
    if (pass->host_calls != (pass->record == with_host ? 2 * ROUNDS : 0)) {
        fprintf(stderr, "%s: %d calls of the host function\n", pass->name, pass->host_calls);
        exit(1);
    }
    free(host);
}

/* All lanes have begun their captures before one ends its own. */
static void *lane(void *argument) {
    struct pass *pass = (struct pass *)argument;
    look_up(pass);
    pthread_barrier_wait(&together);
    if (!pass->exec) capture_begin(pass);
    pthread_barrier_wait(&together);
    if (!pass->exec) instantiate(pass, capture_end(pass));
    pthread_barrier_wait(&together);
    run_rounds(pass);
    return NULL;
}

static void make_ready(struct pass *pass) {
    look_up(pass);
    if (pass->exec) return;
    if (strcmp(pass->name, "by-hand")) capture_begin(pass);
    instantiate(pass, strcmp(pass->name, "by-hand") ? capture_end(pass) : by_hand(pass));
}

static void prepare(struct pass *pass, const struct work *work, int own_stream) {
    void *memory;
    *(struct work *)pass = *work;
    MUST(cudaMalloc(&memory, 3 * BYTES));
    pass->input = (uint32_t *)memory;
    pass->side = pass->input + COUNT;
    pass->output = pass->side + COUNT;
    pass->stream = cudaStreamPerThread;
    if (own_stream) MUST(cudaStreamCreateWithFlags(&pass->stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&pass->beside, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&pass->fork, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&pass->join, cudaEventDisableTiming));
}

/* Loads the kernels, and what the runtime makes at first use; a restore does without. */
static void warm_up(struct pass *passes, int count) {
    foundry_scratch_begin("warm-up");
    for (int index = 0; index < count; ++index) {
        passes[index].record(&passes[index]);
        MUST(cudaStreamSynchronize(passes[index].stream));
    }
    foundry_scratch_end();
}

int main(void) {
    static const struct work works[] = {
        {"lane-0", forked, 11, 0},      {"lane-1", forked, 12, 0},  {"lane-2", forked, 13, 0},
        {"by-hand", forked, 14, 0},     {"moved", forked, 15, 16},  {"updated", forked, 17, 18},
        {"memory", with_memory, 19, 0}, {"host", with_host, 20, 0},
    };
    const int count = (int)(sizeof works / sizeof works[0]);
    static struct pass passes[sizeof works / sizeof works[0]];
    pthread_t threads[LANES];
    MUST(cudaFree(NULL));
    for (int index = 0; index < count; ++index) prepare(&passes[index], &works[index], index >= 2);
    if (foundry_mode() != FOUNDRY_RESTORE) warm_up(passes, count);
    pthread_barrier_init(&together, NULL, LANES);
    for (int index = 0; index < LANES; ++index) pthread_create(&threads[index], NULL, lane, &passes[index]);
    for (int index = 0; index < LANES; ++index) pthread_join(threads[index], NULL);
    for (int index = LANES; index < count; ++index) make_ready(&passes[index]);
    if (foundry_commit() != FOUNDRY_OK) fprintf(stderr, "samples: %s\n", foundry_reason());
    for (int index = LANES; index < count; ++index) run_rounds(&passes[index]);
    for (int index = 0; index < count; ++index)
        for (int round = 0; round < ROUNDS; ++round)
            printf("%s %d %016" PRIx64 "\n", passes[index].name, round, passes[index].digests[round]);
    fprintf(stderr, "facts {");
    for (int index = 0; index < count; ++index) {
        fprintf(stderr, "%s\"%s\": \"%s%s", index ? ", " : "", passes[index].name, passes[index].became,
                passes[index].update ? passes[index].update : "");
        if (passes[index].refusal) fprintf(stderr, " (cudaGraphExecUpdateResult %d)", passes[index].refusal);
        fprintf(stderr, "\"");
    }
    fprintf(stderr, "}\n");
    return 0;
}
