/* Times driver calls twice: through the functions that this process is given, as a CUDA runtime asks for them, and
 * through the driver's own, read off its symbol table. Without the hook both are the same.
 *
 *     launch_overhead IMAGE ROUNDS
 *
 * Prints a line for each kind of call and round: its name, nanoseconds a call as given, of the driver's own, and the
 * same in instructions (0 where the processor's counters cannot be read). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

#define X(name, symbol) __typeof__(&symbol) name;
static struct driver {
    FUNCTIONS(X)
} given, own;
#undef X

static void *find(struct link_map *map, const char *wanted) {
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const uint32_t *hash = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_SYMTAB) symbols = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB) names = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_GNU_HASH) hash = (const void *)entry->d_un.d_ptr;
    }
    if (!symbols || !names || !hash) return NULL;
    uint32_t count = hash[0];
    const uint32_t *buckets = hash + 4 + 2 * hash[2], *chains = buckets + count;
    for (uint32_t bucket = 0; bucket < count; ++bucket) {
        uint32_t index = buckets[bucket];
        if (index < hash[1]) continue;
        do {
            if (!strcmp(names + symbols[index].st_name, wanted)) return (char *)map->l_addr + symbols[index].st_value;
        } while (!(chains[index++ - hash[1]] & 1));
    }
    return NULL;
}

static void bind(void) {
    struct link_map *map = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map)) exit(1);
    __typeof__(&cuGetProcAddress_v2) ask = (__typeof__(ask))dlsym(library, "cuGetProcAddress_v2");
#define X(name, symbol)                                                                                                \
    MUST(ask(#name, (void **)&given.name, 12000, CU_GET_PROC_ADDRESS_DEFAULT, NULL));                                  \
    own.name = (__typeof__(own.name))find(map, #symbol);                                                               \
    if (!own.name) exit(1);
    FUNCTIONS(X)
#undef X
}

static int counter = -1;

static void open_counter(void) {
    struct perf_event_attr what = {.type = PERF_TYPE_HARDWARE, .size = sizeof what};
    what.config = PERF_COUNT_HW_INSTRUCTIONS;
    what.exclude_kernel = what.exclude_hv = 1;
    counter = (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, 0);
}

static struct moment {
    double nanoseconds;
    uint64_t instructions;
} now(void) {
    struct timespec time;
    struct moment moment = {0, 0};
    if (counter >= 0 && read(counter, &moment.instructions, 8) != 8) moment.instructions = 0;
    clock_gettime(CLOCK_MONOTONIC, &time);
    moment.nanoseconds = 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
    return moment;
}

static CUstream stream;
static CUfunction kernel;
static CUgraphExec executable;
static CUdeviceptr memory;

enum { turns = 8, many = 40, few = 4 }; /* 2 * turns * many calls: less than a stream takes before a launch waits */
static int batch;

#define BATCH(call)                                                                                                    \
    for (int index = 0; index < batch; ++index) MUST(call)

static void launch(struct driver *driver) {
    void *parameters[] = {&memory};
    BATCH(driver->cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

static void launch_graph(struct driver *driver) {
    BATCH(driver->cuGraphLaunch(executable, stream));
}

static void take(struct driver *driver, size_t size) {
    for (int index = 0; index < batch; ++index) {
        CUdeviceptr address;
        MUST(driver->cuMemAlloc(&address, size));
        MUST(driver->cuMemFree(address));
    }
}

static void take_small(struct driver *driver) {
    take(driver, 1000);
}

static void take_large(struct driver *driver) {
    take(driver, 8 << 20);
}

static void begin(void) {
    MUST(given.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static CUgraph end(void) {
    CUgraph graph;
    MUST(given.cuStreamEndCapture(stream, &graph));
    return graph;
}

static int compare(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

static double median(double *values) {
    qsort(values, turns, sizeof *values, compare);
    return (values[turns / 2 - 1] + values[turns / 2]) / 2 / batch;
}

/* Short batches in turns, so that clocks, neighbours, and a graph that grows meet both alike over two rounds. */
static void measure(const char *name, void (*work)(struct driver *), int calls, int captured, int round) {
    double nanoseconds[2][turns], instructions[2][turns];
    batch = calls;
    if (captured) begin();
    for (int turn = 0; turn < 2 * turns; ++turn) {
        int which = (turn + turn / 2 + round) & 1; /* given, own, own, given */
        struct moment start = now();
        work(which ? &own : &given);
        struct moment stop = now();
        nanoseconds[which][turn / 2] = stop.nanoseconds - start.nanoseconds;
        instructions[which][turn / 2] = (double)(stop.instructions - start.instructions);
    }
    if (captured) MUST(given.cuGraphDestroy(end()));
    MUST(given.cuStreamSynchronize(stream));
    printf("%s %.2f %.2f %.1f %.1f\n", name, median(nanoseconds[0]), median(nanoseconds[1]), median(instructions[0]),
           median(instructions[1]));
}

/* A graph of one launch: from the archive if it can be had. */
static void get_graph(void) {
    int (*mode)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "foundry_mode");
    void *(*look)(const char *, const char *) =
        (void *(*)(const char *, const char *))dlsym(RTLD_DEFAULT, "foundry_graph_find");
    int (*wait)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "foundry_graph_wait");
    void *(*get)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "foundry_graph_exec");
    int (*label)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "foundry_graph_begin");
    int (*done)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "foundry_graph_end");
    int (*commit)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "foundry_commit");
    void *parameters[] = {&memory}, *found = mode && mode() == 2 ? look("launches", "one") : NULL;
    if (found && !wait(found)) {
        executable = get(found);
        puts("restored 1 0 0 0");
    } else {
        begin();
        MUST(given.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
        CUgraph graph = end();
        if (mode) label("launches", "one");
        MUST(given.cuGraphInstantiateWithFlags(&executable, graph, 0));
        if (mode) done(NULL);
        MUST(given.cuGraphDestroy(graph));
    }
    if (mode) commit();
}

int main(int count, char **arguments) {
    static char image[1 << 20];
    CUdevice device;
    CUcontext context;
    CUmodule module;
    FILE *file = count == 3 ? fopen(arguments[1], "rb") : NULL;
    if (!file || !fread(image, 1, sizeof image - 1, file)) return 2;
    bind();
    open_counter();
    MUST(given.cuInit(0));
    MUST(given.cuDeviceGet(&device, 0));
    MUST(given.cuDevicePrimaryCtxRetain(&context, device));
    MUST(given.cuCtxSetCurrent(context));
    MUST(given.cuModuleLoadData(&module, image));
    MUST(given.cuModuleGetFunction(&kernel, module, "nothing"));
    MUST(given.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(given.cuMemAlloc(&memory, 4096));
    get_graph();
    for (int round = -4; round < atoi(arguments[2]); ++round) {
        if (round == 0) puts("warm 0 0 0 0");
        measure("launch", launch, many, 0, round);
        measure("captured_launch", launch, many, 1, round);
        measure("graph_launch", launch_graph, many, 0, round);
        measure("small_allocation", take_small, many, 0, round);
        measure("large_allocation", take_large, few, 0, round);
    }
    return 0;
}
