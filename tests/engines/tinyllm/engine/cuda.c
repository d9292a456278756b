#include "cuda.h"

#include <stdlib.h>

#include "driver.h"
#include "images.h"

#define ROW_FUNCTION static inline __attribute__((unused))
#include "row_math.h"

#define THREADS 128
#define STREAM_NON_BLOCKING 1

#define KERNELS(X)                                                                                                     \
    X(embed) X(normalise) X(multiply) X(rotate) X(store) X(attend) X(attend_part) X(attend_merge) X(gate) X(add)

struct cuda {
    struct device device; /* first: a pointer to it is one to the whole */
    struct driver driver;
    void *stream, *module;
#define X(name) void *name;
    struct {
        KERNELS(X)
    } kernels;
#undef X
};

static struct cuda *cuda_of(struct device *device) {
    return (struct cuda *)device;
}

struct grid {
    unsigned x, y, z, threads;
};

static struct grid over(long elements) {
    return (struct grid){(unsigned)((elements + THREADS - 1) / THREADS), 1, 1, THREADS};
}

#define LAUNCH(device, name, grid, ...) launch(device, cuda_of(device)->kernels.name, grid, (void *[]){__VA_ARGS__})

static void launch(struct device *device, void *kernel, struct grid grid, void **parameters) {
    struct cuda *cuda = cuda_of(device);
    DRIVE(&cuda->driver, cuLaunchKernel, kernel, grid.x, grid.y, grid.z, grid.threads, 1, 1, 0, cuda->stream,
          parameters, NULL);
}

static void wait_for_stream(struct device *device) {
    DRIVE(&cuda_of(device)->driver, cuStreamSynchronize, cuda_of(device)->stream);
}

static void give_back(struct storage *storage) {
    struct cuda *cuda = storage->owner;
    DRIVE(&cuda->driver, cuMemFree, storage->address);
}

static struct storage *take(struct device *device, size_t bytes) {
    struct cuda *cuda = cuda_of(device);
    struct storage *storage = take_memory(1, sizeof *storage);
    *storage = (struct storage){.references = 1, .bytes = bytes, .owner = cuda, .give_back = give_back};
    DRIVE(&cuda->driver, cuMemAlloc, &storage->address, bytes);
    DRIVE(&cuda->driver, cuMemsetD8Async, storage->address, 0, bytes, cuda->stream);
    return storage;
}

static void write_tensor(struct device *device, const struct tensor *tensor, const void *bytes) {
    struct cuda *cuda = cuda_of(device);
    DRIVE(&cuda->driver, cuMemcpyHtoDAsync, tensor_address(tensor), bytes, tensor_bytes(tensor), cuda->stream);
}

static void read_tensor(struct device *device, const struct tensor *tensor, void *bytes) {
    struct cuda *cuda = cuda_of(device);
    DRIVE(&cuda->driver, cuMemcpyDtoHAsync, bytes, tensor_address(tensor), tensor_bytes(tensor), cuda->stream);
    wait_for_stream(device);
}

static void embed(struct device *device, const struct tensor *out, const struct tensor *tokens,
                  const struct tensor *table, const struct tensor *scales) {
    uint64_t to = tensor_address(out), ids = tensor_address(tokens), from = tensor_address(table);
    uint64_t scale = tensor_address(scales);
    int rows = (int)out->shape[0], width = (int)out->shape[1];
    LAUNCH(device, embed, over((long)rows * width), &to, &ids, &from, &scale, &rows, &width);
}

static void normalise(struct device *device, const struct tensor *out, const struct tensor *in,
                      const struct tensor *weights, float epsilon) {
    uint64_t to = tensor_address(out), from = tensor_address(in), weight = tensor_address(weights);
    int rows = (int)in->shape[0], width = (int)in->shape[1];
    const struct grid grid = {(unsigned)rows, 1, 1, LANES};
    LAUNCH(device, normalise, grid, &to, &from, &weight, &rows, &width, &epsilon);
}

static void multiply(struct device *device, const struct tensor *out, const struct tensor *in,
                     const struct tensor *weights, const struct tensor *scales) {
    uint64_t to = tensor_address(out), from = tensor_address(in), weight = tensor_address(weights);
    uint64_t scale = tensor_address(scales);
    int rows = (int)in->shape[0], width = (int)in->shape[1], outputs = (int)out->shape[1];
    const struct grid grid = over((long)rows * outputs * LANES);
    LAUNCH(device, multiply, grid, &to, &from, &weight, &scale, &rows, &width, &outputs);
}

static void rotate(struct device *device, const struct tensor *rows, const struct places *places,
                   const struct tensor *cosines, const struct tensor *sines, int head_size) {
    uint64_t at = tensor_address(rows), positions = tensor_address(&places->positions);
    uint64_t cosine = tensor_address(cosines), sine = tensor_address(sines);
    int count = (int)rows->shape[0], heads = (int)rows->shape[1] / head_size;
    const struct grid grid = over((long)count * heads * head_size / 2);
    LAUNCH(device, rotate, grid, &at, &positions, &cosine, &sine, &count, &heads, &head_size);
}

static void store(struct device *device, const struct tensor *cache, const struct tensor *rows,
                  const struct places *places) {
    uint64_t to = tensor_address(cache), from = tensor_address(rows), positions = tensor_address(&places->positions);
    uint64_t streams = tensor_address(&places->streams), pages = tensor_address(&places->pages);
    int count = (int)rows->shape[0], width = (int)rows->shape[1], most = (int)places->pages.shape[1];
    LAUNCH(device, store, over((long)count * width), &to, &from, &positions, &streams, &pages, &most, &count, &width);
}

static void attend(struct device *device, const struct tensor *out, const struct attention *attention) {
    const struct places *places = attention->places;
    uint64_t to = tensor_address(out), query = tensor_address(attention->query);
    uint64_t keys = tensor_address(attention->keys), values = tensor_address(attention->values);
    uint64_t positions = tensor_address(&places->positions), streams = tensor_address(&places->streams);
    uint64_t pages = tensor_address(&places->pages), partials = tensor_address(attention->partials);
    int most = (int)places->pages.shape[1], rows = (int)out->shape[0], heads = attention->heads;
    int key_heads = attention->key_heads, size = attention->head_size, chunks = attention->chunks;
    const struct grid blocks = {(unsigned)chunks, (unsigned)heads, (unsigned)rows, LANES};
    if (chunks == 1) {
        LAUNCH(device, attend, blocks, &to, &query, &keys, &values, &positions, &streams, &pages, &most, &rows, &heads,
               &key_heads, &size);
        return;
    }
    LAUNCH(device, attend_part, blocks, &partials, &query, &keys, &values, &positions, &streams, &pages, &most, &rows,
           &heads, &key_heads, &size, &chunks);
    LAUNCH(device, attend_merge, over((long)rows * heads * size), &to, &partials, &rows, &heads, &size, &chunks);
}

static void gate_rows(struct device *device, const struct tensor *out, const struct tensor *gate,
                      const struct tensor *up) {
    uint64_t to = tensor_address(out), gates = tensor_address(gate), values = tensor_address(up);
    int count = (int)tensor_count(out);
    LAUNCH(device, gate, over(count), &to, &gates, &values, &count);
}

static void add(struct device *device, const struct tensor *to, const struct tensor *from) {
    uint64_t target = tensor_address(to), source = tensor_address(from);
    int count = (int)tensor_count(to);
    LAUNCH(device, add, over(count), &target, &source, &count);
}

void *cuda_stream(struct device *device) {
    return cuda_of(device)->stream;
}

const void *cuda_image(struct device *device, size_t *bytes) {
    const bool simulated = cuda_of(device)->driver.simulated;
    if (bytes) *bytes = simulated ? simulator_image_bytes : gpu_image_bytes;
    return simulated ? simulator_image : gpu_image;
}

struct device *cuda_open(void) {
    static struct cuda cuda = {.device = {"cuda", take, write_tensor, read_tensor, wait_for_stream, embed, normalise,
                                          multiply, rotate, store, attend, gate_rows, add}};
    int ordinal = 0;
    void *context = NULL;
    cuda.driver = driver_open();
    DRIVE(&cuda.driver, cuInit, 0);
    DRIVE(&cuda.driver, cuDeviceGet, &ordinal, 0);
    DRIVE(&cuda.driver, cuDevicePrimaryCtxRetain, &context, ordinal);
    DRIVE(&cuda.driver, cuCtxSetCurrent, context);
    DRIVE(&cuda.driver, cuStreamCreate, &cuda.stream, STREAM_NON_BLOCKING);
    DRIVE(&cuda.driver, cuModuleLoadData, &cuda.module, cuda_image(&cuda.device, NULL));
#define X(name) DRIVE(&cuda.driver, cuModuleGetFunction, &cuda.kernels.name, cuda.module, #name);
    KERNELS(X)
#undef X
    return &cuda.device;
}
