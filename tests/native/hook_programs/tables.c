/* A graph reads memory that was allocated during its capture, and that the program filled by other means than the
 * graph. Says what it computes in two launches. argv[1] is the image, argv[2] what is in that memory: table numbers,
 * far apart counter    a list that each launch appends to, which must be empty at first large      more than is kept
 *   addresses  a pointer to the result
 *   replaced   numbers, and once the graph is gone another one's in the same memory
 *   beside     numbers, and another capture is in progress when the graph is made
 *   many       numbers in many small allocations
 *   foreign    as table; then the second graph reads what another thread had allocated and filled meanwhile
 * argv[3] = killed: it kills itself before it is ready, once the first graph is made. */
#define _GNU_SOURCE
#include "interface.h"
#include "program.h"

#include <pthread.h>
#include <signal.h>

enum { words = 4, number_of_many = 40 };

static CUstream stream, side;
static CUdeviceptr result, ones;
static CUfunction vector_add, append;

static void print_result(const char *key) {
    float got[words];
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(got, result, sizeof got));
    SAY("%s %g %g %g %g", key, got[0], got[1], got[2], got[3]);
}

static int restored(const char *key) {
    if (foundry.mode() != 2) return 0;
    foundry_graph *graph = foundry.find("tables", key);
    if (!graph || foundry.wait(graph)) {
        fprintf(stderr, "not restored %s: %s\n", key, foundry.reason());
        return 0;
    }
    for (int launch = 0; launch < 2; ++launch) {
        if (foundry.launch(graph, stream)) exit(3);
        print_result(key);
    }
    return 1;
}

/* By another stream than the one that is captured. */
static void put(CUdeviceptr at, const void *bytes, size_t size) {
    MUST(cuMemcpyHtoDAsync(at, bytes, size, side));
    MUST(cuStreamSynchronize(side));
}

static void add(CUdeviceptr to, CUdeviceptr left, CUdeviceptr right) {
    uint32_t count = words;
    void *parameters[] = {&to, &left, &right, &count};
    MUST(cuLaunchKernel(vector_add, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

static CUcontext context;
static CUdeviceptr of_thread;

/* What a program loads beside its captures, such as weights. */
static void *load(void *unused) {
    const float numbers[words] = {100, 200, 300, 400};
    (void)unused;
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&of_thread, 5 << 20));
    put(of_thread, numbers, sizeof numbers);
    return NULL;
}

static CUdeviceptr capture(const char *kind, const char *key, float first) {
    size_t size = !strcmp(kind, "large") ? (size_t)80 << 20 : 3u << 20;
    float numbers[words] = {first, first + 1, first + 2, first + 3};
    CUdeviceptr table, second, many[number_of_many];
    CUgraph graph, other;
    CUgraphExec exec;
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemAlloc(&table, size));
    second = table + size - 4096;
    const uint32_t none[8] = {0};
    if (!strcmp(kind, "counter"))
        put(table, none, sizeof none);
    else if (!strcmp(kind, "addresses"))
        put(table + 16, &result, sizeof result);
    else
        put(table + 16, numbers, sizeof numbers), put(second, numbers, sizeof numbers);
    if (!strcmp(kind, "counter")) {
        uint32_t bits = 0x3f800000; /* 1.0 */
        void *parameters[] = {&table, &bits};
        MUST(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        MUST(cuMemcpyDtoDAsync(result, table + 4, sizeof numbers, stream));
    } else {
        add(result, ones, table + 16);
        add(result, result, second);
    }
    for (int index = 0; !strcmp(kind, "many") && index < number_of_many; ++index) {
        numbers[0] = (float)index;
        MUST(cuMemAlloc(&many[index], 64));
        put(many[index], numbers, sizeof numbers);
        add(result, result, many[index]);
    }
    if (!strcmp(kind, "foreign")) {
        pthread_t thread;
        pthread_create(&thread, NULL, load, NULL);
        pthread_join(thread, NULL);
    }
    if (of_thread && !strcmp(key, "second")) add(result, result, of_thread);
    MUST(cuStreamEndCapture(stream, &graph));
    if (!strcmp(kind, "beside")) MUST(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (foundry.begin("tables", key)) exit(3);
    MUST(cuGraphInstantiate(&exec, graph, 0));
    if (foundry.end("{}")) exit(3);
    if (!strcmp(kind, "beside")) MUST(cuStreamEndCapture(side, &other));
    for (int launch = 0; launch < 2; ++launch) {
        MUST(cuGraphLaunch(exec, stream));
        print_result(key);
    }
    MUST(cuGraphDestroy(graph));
    return table;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    const char *kind = arguments[2];
    const float one[words] = {1, 1, 1, 1};
    static unsigned char image[1 << 22];
    FILE *file = fopen(arguments[1], "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return 2;
    fclose(file);
    find_interface();
    context = primary_context();
    CUmodule module;
    MUST(cuModuleLoadData(&module, image));
    MUST(cuModuleGetFunction(&vector_add, module, "vector_add"));
    MUST(cuModuleGetFunction(&append, module, "append"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&result, 4096));
    MUST(cuMemAlloc(&ones, 4096));
    MUST(cuMemcpyHtoD(ones, one, sizeof one));
    MUST(cuCtxSynchronize());
    CUdeviceptr table = 0;
    if (!restored("first")) table = capture(kind, "first", 10);
    if (count > 3 && !strcmp(arguments[3], "killed")) raise(SIGKILL);
    if (!strcmp(kind, "foreign") && !of_thread) load(NULL);
    if (!strcmp(kind, "replaced") || !strcmp(kind, "beside") || !strcmp(kind, "foreign")) {
        if (table && !strcmp(kind, "replaced")) MUST(cuMemFree(table));
        if (!restored("second")) capture("table", "second", 20);
    }
    if (foundry.commit()) return 3;
    return 0;
}
