/* Passes through a cache of graphs in C; keyed_program.py is the same in Python. Prints how each pass was run, then the
 * counts, or the line of a comparison.
 *
 *     keyed_program IMAGE passes|parity ROWS:AMOUNT,... [NAME=VALUE ...]
 *
 * A pass adds `amount` to the first `rows` of 8 numbers, twice if there are more than 4 of them. Names: most,
 * dedicated, floor, inputs, warm (ROWS:AMOUNT,...), blind (passes ignore the amount), hidden (the key lacks it),
 * control, renamed (another name for the amount), reopen (before that pass the cache is closed and opened again), two
 * (each other pass goes through another cache of the same name), forked (a pass runs on two streams, and all passes
 * have the same nodes).
 */
#define _GNU_SOURCE
#include "keyed/foundry_keyed.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capi/foundry_capi.h"

#define NUMBERS 8
#define MOST_PASSES 256

static CUfunction kernel;
static CUdeviceptr numbers;
static int blind, unsafe; /* unsafe: 1 looks at the result of a wait, 2 does not */
static uint64_t keys[MOST_PASSES][3], warm[MOST_PASSES][3];
static uint32_t expected[NUMBERS];
static const uint64_t *current;
static size_t key_length;
static int (*commit)(void);
static int cleared;
static int hog = -1; /* before which pass another takes 40 MiB */
static int reopen = -1, two;
static int forked;
static CUstream side;
static CUevent forks, joins;

/* Stands in for the runtime's, which keeps an error until it is asked. */
int cudaGetLastError(void);
int cudaGetLastError(void) {
    return cleared++;
}

static void check(CUresult result, const char *what) {
    if (result == CUDA_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", what, (int)result);
    exit(10);
}

static unsigned read_keys(const char *text, uint64_t (*to)[3]) {
    unsigned count = 0;
    unsigned long long rows, amount;
    int used;
    while (*text && sscanf(text, "%llu:%llu%n", &rows, &amount, &used) == 2) {
        to[count][0] = rows;
        to[count][1] = amount;
        to[count++][2] = numbers;
        text += used;
        text += *text == ',';
    }
    return count;
}

static int launch(CUstream stream, uint64_t count, uint8_t amount) {
    uint32_t scale = 1;
    void *parameters[] = {&numbers, &amount, &scale, &count};
    return (int)cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* The stream's own node comes before the one that it waits for, but was made after it: nodes 1 and 2 of node 3. */
static int record_forked(CUstream stream, uint64_t count, uint8_t amount) {
    int result = launch(stream, 0, amount);
    if (!result) result = (int)cuEventRecord(forks, stream);
    if (!result) result = (int)cuStreamWaitEvent(side, forks, 0);
    if (!result) result = launch(side, count, amount);
    if (!result) result = launch(stream, count > 4 ? count : 0, amount);
    if (!result) result = (int)cuEventRecord(joins, side);
    if (!result) result = (int)cuStreamWaitEvent(stream, joins, 0);
    return result ? result : launch(stream, 0, amount);
}

static int record(void *user, void *stream) {
    const uint64_t *key = user ? user : current;
    uint64_t count = key[0];
    uint8_t amount = blind ? 1 : (uint8_t)key[1];
    int result = 0, i;
    if (forked) return record_forked(stream, count, amount);
    for (i = 0; i < 1 + (count > 4) && !result; i++) result = launch(stream, count, amount);
    if (unsafe && !result) result = (int)cuStreamSynchronize(stream);
    return unsafe == 2 ? 0 : result;
}

static void expect(const uint64_t *key) {
    uint32_t found[NUMBERS];
    unsigned i;
    for (i = 0; i < key[0]; i++) expected[i] += (uint32_t)((blind ? 1 : key[1]) * (1 + (key[0] > 4)));
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    check(cuMemcpyDtoH(found, numbers, sizeof found), "cuMemcpyDtoH");
    if (!memcmp(found, expected, sizeof found)) return;
    fprintf(stderr, "wrong numbers after a pass\n");
    exit(11);
}

static int begin(void *user, unsigned round, uint64_t *values) {
    (void)user;
    current = keys[round];
    memcpy(values, current, key_length * sizeof *values);
    return 0;
}

static void run_passes(foundry_keyed **first, const foundry_keyed_options *options, unsigned count,
                       unsigned warm_count) {
    foundry_keyed *cache = *first, *other = two ? foundry_keyed_open(options) : NULL;
    static const char *const ways[] = {"eager", "captured", "updated", "replayed"};
    foundry_keyed_counts counts;
    unsigned i;
    for (i = 0; i < warm_count; i++) {
        const int result = foundry_keyed_warm(cache, warm[i], record, warm[i]);
        printf("warm %s\n", result ? "no" : "yes");
    }
    if (commit) commit();
    /* A warm-up leaves what it writes, and a restore runs none. */
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    check(cuMemsetD8(numbers, 0, sizeof expected), "cuMemsetD8");
    for (i = 0; i < count; i++) {
        int done = -1, result;
        CUdeviceptr taken;
        if ((int)i == hog) check(cuMemAlloc(&taken, (size_t)40 << 20), "cuMemAlloc");
        if ((int)i == reopen) {
            foundry_keyed_close(cache);
            *first = cache = foundry_keyed_open(options);
        }
        if (other) cache = i % 2 ? other : *first;
        result = foundry_keyed_run(cache, keys[i], record, keys[i], &done);
        if (result) {
            printf(" error %d %s\n", result, foundry_keyed_reason(cache));
            return;
        }
        printf("%s%s", i ? " " : "", ways[done]);
        expect(keys[i]);
    }
    counts = foundry_keyed_count(*first);
    foundry_keyed_close(other);
    if (getenv("TELL_CLEARED")) printf("\ncleared %d", cleared);
    printf("\nrestored %d dropped %d refused %d emptied %d held %d\n", (int)counts.restored, (int)counts.dropped,
           (int)counts.refused, (int)counts.emptied, (int)counts.held);
}

int main(int count, char **words) {
    static const char *names[] = {"rows", "amount", "place"};
    static unsigned char image[1 << 20];
    foundry_keyed_options options = {.set = "test", .names = names, .shape_count = 1, .moving_count = 1};
    foundry_parity_span span = {"numbers", 0, sizeof expected};
    const char *control = NULL;
    unsigned key_count, warm_count = 0;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUstream stream;
    FILE *file = fopen(words[1], "rb");
    int i, verdict = 0;
    if (!file || !fread(image, 1, sizeof image, file)) return 12;
    fclose(file);
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuModuleLoadData(&module, image), "cuModuleLoadData");
    check(cuModuleGetFunction(&kernel, module, "add_constant"), "cuModuleGetFunction");
    check(cuMemAlloc(&numbers, sizeof expected), "cuMemAlloc");
    check(cuMemsetD8(numbers, 0, sizeof expected), "cuMemsetD8");
    check(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuEventCreate(&forks, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    check(cuEventCreate(&joins, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    options.stream = stream;
    key_count = read_keys(getenv("KEYED_KEYS") ? getenv("KEYED_KEYS") : words[3], keys);
    for (i = 4; i < count; i++) {
        const char *value = strchr(words[i], '=') + 1;
        const size_t length = (size_t)(value - words[i] - 1);
#define IS(name) (length == strlen(name) && !strncmp(words[i], name, length))
        if (IS("most")) options.most = (unsigned)atoi(value);
        if (IS("dedicated")) options.dedicated = (unsigned)atoi(value);
        if (IS("floor")) options.floor = strtoull(value, NULL, 10);
        if (IS("inputs")) options.inputs = value;
        if (IS("warm")) warm_count = read_keys(value, warm);
        if (IS("blind")) blind = 1;
        if (IS("unsafe")) unsafe = strcmp(value, "told") ? 2 : 1;
        if (IS("hog")) hog = atoi(value);
        if (IS("reopen")) reopen = atoi(value);
        if (IS("two")) two = 1;
        if (IS("forked")) forked = 1;
        if (IS("renamed")) names[1] = value;
        if (IS("hidden")) options.moving_count = 0;
        if (IS("pointer")) options.moving_count = 2;
        if (IS("control")) control = value;
    }
    key_length = options.shape_count + options.moving_count;
    *(void **)&commit = dlsym(RTLD_DEFAULT, "foundry_commit");
    {
        foundry_keyed *cache = foundry_keyed_open(&options);
        if (!cache) {
            printf("not opened: %s\n", foundry_keyed_reason(NULL));
            return 13;
        }
        if (!strcmp(words[2], "passes")) {
            run_passes(&cache, &options, key_count, warm_count);
        } else {
            foundry_parity_options parity = {.cache = cache,
                                             .state = &span,
                                             .outputs = &span,
                                             .state_count = 1,
                                             .output_count = 1,
                                             .rounds = key_count,
                                             .begin = begin,
                                             .record = record};
            foundry_parity_report report;
            char line[1024];
            span.address = numbers;
            parity.controls = control ? &control : NULL;
            parity.control_count = control ? 1 : 0;
            for (i = 0; i < (int)warm_count; i++) foundry_keyed_warm(cache, warm[i], record, warm[i]);
            verdict = foundry_parity_run(&parity, &report);
            foundry_parity_line(cache, &report, line, sizeof line);
            puts(line);
        }
        foundry_keyed_close(cache);
    }
    return verdict;
}
