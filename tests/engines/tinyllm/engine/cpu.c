/* The reference path: every operation on the CPU, one row after the other. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#define ROW_FUNCTION static inline
#include "row_math.h"

static void give_back(struct storage *storage) {
    free(storage->host);
}

static struct storage *take(struct device *device, size_t bytes) {
    (void)device;
    struct storage *storage = take_memory(1, sizeof *storage);
    *storage = (struct storage){.references = 1, .bytes = bytes, .host = take_memory(bytes, 1), .give_back = give_back};
    return storage;
}

static void write_tensor(struct device *device, const struct tensor *tensor, const void *bytes) {
    (void)device;
    memcpy(tensor_host(tensor), bytes, tensor_bytes(tensor));
}

static void read_tensor(struct device *device, const struct tensor *tensor, void *bytes) {
    (void)device;
    memcpy(bytes, tensor_host(tensor), tensor_bytes(tensor));
}

static void wait_for_nothing(struct device *device) {
    (void)device;
}

static void embed(struct device *device, const struct tensor *out, const struct tensor *tokens,
                  const struct tensor *table, const struct tensor *scales) {
    (void)device;
    const long width = out->shape[1];
    for (long row = 0; row < out->shape[0]; row++) {
        const int token = ((const int *)tensor_host(tokens))[row];
        float *to = (float *)tensor_host(out) + row * width;
        const signed char *from = (const signed char *)tensor_host(table) + token * width;
        for (long i = 0; i < width; i++) to[i] = (float)from[i] * ((const float *)tensor_host(scales))[token];
    }
}

static void normalise(struct device *device, const struct tensor *out, const struct tensor *in,
                      const struct tensor *weights, float epsilon) {
    (void)device;
    const int width = (int)in->shape[1];
    const float *weight = tensor_host(weights);
    for (long row = 0; row < in->shape[0]; row++) {
        const float *from = (const float *)tensor_host(in) + row * width;
        float *to = (float *)tensor_host(out) + row * width;
        const float scale = inverse_mean_square(from, width, epsilon);
        for (int i = 0; i < width; i++) to[i] = from[i] * scale * weight[i];
    }
}

static void multiply(struct device *device, const struct tensor *out, const struct tensor *in,
                     const struct tensor *weights, const struct tensor *scales) {
    (void)device;
    const int width = (int)in->shape[1], outputs = (int)out->shape[1];
    const float *scale = tensor_host(scales);
    for (long row = 0; row < in->shape[0]; row++) {
        const float *from = (const float *)tensor_host(in) + row * width;
        const signed char *weight = tensor_host(weights);
        float *to = (float *)tensor_host(out) + row * outputs;
        for (int i = 0; i < outputs; i++, weight += width) to[i] = dot_quantised(weight, from, width) * scale[i];
    }
}

static void rotate(struct device *device, const struct tensor *rows, const struct places *places,
                   const struct tensor *cosines, const struct tensor *sines, int head_size) {
    (void)device;
    const int half = head_size / 2;
    const long width = rows->shape[1];
    for (long row = 0; row < rows->shape[0]; row++) {
        const int position = ((const int *)tensor_host(&places->positions))[row];
        const float *cosine = (const float *)tensor_host(cosines) + (long)position * half;
        const float *sine = (const float *)tensor_host(sines) + (long)position * half;
        float *head = (float *)tensor_host(rows) + row * width;
        for (long i = 0; i < width && position >= 0; i += head_size) rotate_head(head + i, cosine, sine, half);
    }
}

static const int *pages_of(const struct places *places, long row) {
    const int stream = ((const int *)tensor_host(&places->streams))[row];
    return (const int *)tensor_host(&places->pages) + stream * places->pages.shape[1];
}

static void store(struct device *device, const struct tensor *cache, const struct tensor *rows,
                  const struct places *places) {
    (void)device;
    const int width = (int)rows->shape[1];
    for (long row = 0; row < rows->shape[0]; row++) {
        const int position = ((const int *)tensor_host(&places->positions))[row];
        if (position < 0) continue;
        memcpy((float *)tensor_host(cache) + cache_place(pages_of(places, row), position, width),
               (const float *)tensor_host(rows) + row * width, (size_t)width * sizeof(float));
    }
}

static void attend(struct device *device, const struct tensor *out, const struct attention *attention) {
    (void)device;
    const int size = attention->head_size, width = attention->key_heads * size;
    float partials[LARGEST_CHUNKS * PARTIAL(LARGEST_HEAD)];
    for (long row = 0; row < out->shape[0]; row++)
        for (int head = 0; head < attention->heads; head++) {
            const int place = head / (attention->heads / attention->key_heads) * size;
            const int last = ((const int *)tensor_host(&attention->places->positions))[row];
            const long at = (row * attention->heads + head) * size;
            for (int chunk = 0; chunk < attention->chunks; chunk++)
                attend_block(partials + chunk * PARTIAL(size), (const float *)tensor_host(attention->query) + at,
                             (const float *)tensor_host(attention->keys) + place,
                             (const float *)tensor_host(attention->values) + place, pages_of(attention->places, row),
                             chunk * CHUNK, last, width, size);
            for (int i = 0; i < size; i++)
                ((float *)tensor_host(out))[at + i] = merged(partials, attention->chunks, size, i);
        }
}

static void gate_rows(struct device *device, const struct tensor *out, const struct tensor *gate,
                      const struct tensor *up) {
    (void)device;
    for (long i = 0; i < tensor_count(out); i++)
        ((float *)tensor_host(out))[i] =
            gated(((const float *)tensor_host(gate))[i], ((const float *)tensor_host(up))[i]);
}

static void add(struct device *device, const struct tensor *to, const struct tensor *from) {
    (void)device;
    for (long i = 0; i < tensor_count(to); i++) ((float *)tensor_host(to))[i] += ((const float *)tensor_host(from))[i];
}

struct device *cpu_open(void) {
    static struct device device = {"cpu",    take,   write_tensor, read_tensor, wait_for_nothing, embed, normalise,
                                   multiply, rotate, store,        attend,      gate_rows,        add};
    return &device;
}
