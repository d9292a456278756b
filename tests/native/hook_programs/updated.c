/* Captures named graphs in which nodes wait for several others, in orders of every kind; in a restore it takes them
 * from the archive. Says what they compute. argv[1] is the image; with argv[2] = update each restored exec is updated
 * from a graph that is made anew, with other values, and launched again. */
#define _GNU_SOURCE
#include "interface.h"
#include "program.h"

#define NUMBERS 16
#define BRANCHES 3
static CUstream stream, sides[BRANCHES];
static CUdeviceptr numbers;
static CUfunction add;
static int update;

typedef struct {
    CUdeviceptr at;
    uint32_t scale;
    uint64_t count;
    uint8_t amount;
    void *arguments[4];
} Step;

/* Adds the amount to one number. */
static void set_step(Step *step, unsigned index, unsigned amount) {
    step->at = numbers + 4 * index;
    step->amount = (uint8_t)amount;
    step->scale = 1;
    step->count = 1;
    step->arguments[0] = &step->at;
    step->arguments[1] = &step->amount;
    step->arguments[2] = &step->scale;
    step->arguments[3] = &step->count;
}

static void launch_step(CUstream on, unsigned index, unsigned amount) {
    Step step;
    set_step(&step, index, amount);
    MUST(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, on, step.arguments, NULL));
}

static CUgraphNode add_step(CUgraph graph, unsigned index, unsigned amount, const CUgraphNode *from, size_t count) {
    Step step;
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS launch = {0};
    set_step(&step, index, amount);
    launch.func = add;
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
    launch.kernelParams = step.arguments;
    MUST(cuGraphAddKernelNode(&node, graph, from, count, &launch));
    return node;
}

/* The branches are waited for in another order than they are begun in, and the stream's own work comes first. */
static CUgraph forked(unsigned amount) {
    CUgraph graph;
    CUevent fork, join[BRANCHES];
    int branch;
    MUST(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch_step(stream, 0, amount);
    MUST(cuEventRecord(fork, stream));
    for (branch = 0; branch < BRANCHES; branch++) {
        MUST(cuEventCreate(&join[branch], CU_EVENT_DISABLE_TIMING));
        MUST(cuStreamWaitEvent(sides[branch], fork, 0));
        launch_step(sides[branch], 1 + (unsigned)branch, amount + 1);
        MUST(cuEventRecord(join[branch], sides[branch]));
    }
    launch_step(stream, 4, amount);
    for (branch = 0; branch < BRANCHES; branch++) {
        MUST(cuStreamWaitEvent(stream, join[(branch + 1) % BRANCHES], 0));
        if (branch == 1) MUST(cuMemsetD32Async(numbers + 20, amount, 2, stream));
    }
    launch_step(stream, 0, amount);
    MUST(cuStreamEndCapture(stream, &graph));
    return graph;
}

/* Four nodes that a last one waits for, with its edges in that order, one with data between those without. */
static CUgraph waiting_for(const unsigned order[4], unsigned amount) {
    CUgraphEdgeData programmatic = {
        CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {0}};
    CUgraph graph;
    CUgraphNode nodes[4], last;
    unsigned index;
    MUST(cuGraphCreate(&graph, 0));
    for (index = 0; index < 4; index++) nodes[index] = add_step(graph, index, amount + index, NULL, 0);
    last = add_step(graph, 8, amount, NULL, 0);
    for (index = 0; index < 4; index++)
        MUST(
            cuGraphAddDependencies_v2(graph, &nodes[order[index]], &last, order[index] == 1 ? &programmatic : NULL, 1));
    return graph;
}

static CUgraph joined(unsigned amount) {
    static const unsigned order[] = {2, 1, 3, 0};
    return waiting_for(order, amount);
}

/* The same nodes and edges, in the order of the nodes. */
static CUgraph in_a_row(unsigned amount) {
    static const unsigned order[] = {0, 1, 2, 3};
    return waiting_for(order, amount);
}

/* A node that lost its first dependency and got it back. */
static CUgraph rewired(unsigned amount) {
    CUgraph graph;
    CUgraphNode nodes[3], last;
    unsigned index;
    MUST(cuGraphCreate(&graph, 0));
    for (index = 0; index < 3; index++) nodes[index] = add_step(graph, index, amount + index, NULL, 0);
    last = add_step(graph, 9, amount, nodes, 3);
    MUST(cuGraphRemoveDependencies_v2(graph, &nodes[0], &last, NULL, 1));
    MUST(cuGraphAddDependencies_v2(graph, &nodes[0], &last, NULL, 1));
    return graph;
}

/* Graphs with joins in a graph with one. */
static CUgraph nested(unsigned amount) {
    CUgraph graph, inner = forked(amount), other = joined(amount);
    CUgraphNode nodes[3], last;
    MUST(cuGraphCreate(&graph, 0));
    nodes[0] = add_step(graph, 10, amount, NULL, 0);
    MUST(cuGraphAddChildGraphNode(&nodes[2], graph, NULL, 0, inner));
    MUST(cuGraphAddChildGraphNode(&nodes[1], graph, &nodes[2], 1, other));
    last = add_step(graph, 11, amount, nodes, 3);
    add_step(graph, 12, amount, &last, 1);
    return graph;
}

static void say_numbers(const char *key, const char *how) {
    uint32_t got[NUMBERS];
    char line[256];
    int at = 0, index;
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(got, numbers, sizeof got));
    MUST(cuMemsetD8(numbers, 0, sizeof got));
    for (index = 0; index < NUMBERS; index++) at += snprintf(line + at, sizeof line - (size_t)at, " %u", got[index]);
    SAY("%s %s:%s", key, how, line);
}

static void run(const char *key, CUgraph (*make)(unsigned), unsigned amount) {
    CUgraphExec exec;
    CUgraph graph;
    if (foundry.mode() == 2) {
        foundry_graph *found = foundry.find("updated", key);
        if (!found || foundry.wait(found)) exit(3);
        exec = foundry.exec(found);
    } else {
        graph = make(amount);
        if (foundry.begin("updated", key)) exit(3);
        MUST(cuGraphInstantiate(&exec, graph, 0));
        if (foundry.end("")) exit(3);
    }
    MUST(cuGraphLaunch(exec, stream));
    say_numbers(key, "launched");
    if (update) {
        CUgraphExecUpdateResultInfo info;
        CUresult result = cuGraphExecUpdate(exec, make(amount + 30), &info);
        if (result) SAY("%s: update refused, %d %d", key, (int)result, (int)info.result);
        MUST(cuGraphLaunch(exec, stream));
        say_numbers(key, "updated");
    }
}

int main(int count, char **arguments) {
    static unsigned char image[1 << 22];
    CUmodule module;
    int branch;
    FILE *file = fopen(arguments[1], "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return 2;
    fclose(file);
    update = count > 2 && !strcmp(arguments[2], "update");
    find_interface();
    if (!foundry.find) return 2; /* without the hook */
    primary_context();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (branch = 0; branch < BRANCHES; branch++) MUST(cuStreamCreate(&sides[branch], CU_STREAM_NON_BLOCKING));
    MUST(cuModuleLoadData(&module, image));
    MUST(cuModuleGetFunction(&add, module, "add_constant"));
    MUST(cuMemAlloc(&numbers, 4 * NUMBERS));
    MUST(cuMemsetD8(numbers, 0, 4 * NUMBERS));
    run("forked-1", forked, 1);
    run("forked-2", forked, 2);
    run("joined-1", joined, 3);
    run("in-a-row", in_a_row, 4);
    run("joined-2", joined, 5);
    run("rewired", rewired, 6);
    run("nested", nested, 7);
    return foundry.commit() ? 3 : 0;
}
