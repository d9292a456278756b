#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW_FUNCTION static inline __attribute__((unused))
#include "row_math.h"

int model_stream_pages(const struct model *model) {
    return (model->configuration.context + PAGE - 1) / PAGE;
}

int model_chunks(int positions) {
    return (positions + CHUNK - 1) / CHUNK;
}

static struct tensor room(struct model *model, enum element element, long rows, long width) {
    struct storage *storage = model->device->take(model->device, (size_t)(rows * width) * element_size(element));
    return tensor_over(storage, element, 2, (long[]){rows, width});
}

/* A tensor of the file on the device: a view of the mapping where the device can read that. */
static struct tensor weights(struct model *model, const struct safetensors *file, const char *name,
                             enum element element, long rows, long width) {
    const long shape[] = {rows, width};
    struct tensor mapped =
        width ? safetensors_take(file, name, element, 2, shape) : safetensors_take(file, name, element, 1, shape);
    if (model->device == cpu_open()) return mapped;
    struct tensor tensor = room(model, element, rows, width ? width : 1);
    model->device->write(model->device, &tensor, tensor_host(&mapped));
    tensor_drop(&mapped);
    return tensor;
}

static struct quantised quantised(struct model *model, const struct safetensors *file, const char *name, long outputs,
                                  long inputs) {
    struct text scales = {0};
    text_format(&scales, "%s.scales", name);
    struct quantised both = {weights(model, file, name, ELEMENT_INT8, outputs, inputs),
                             weights(model, file, scales.bytes, ELEMENT_FLOAT, outputs, 0)};
    text_drop(&scales);
    return both;
}

static struct layer read_layer(struct model *model, const struct safetensors *file, int index) {
    const struct configuration *sizes = &model->configuration;
    const long hidden = sizes->hidden, inner = sizes->inner, all = (long)sizes->heads * sizes->head_size;
    const long keys = (long)sizes->key_heads * sizes->head_size;
    const long pages = (long)MOST_STREAMS * model_stream_pages(model);
    char name[64];
#define NAMED(what) (snprintf(name, sizeof name, "layers.%d." what, index), name)
    return (struct layer){
        .attention_norm = weights(model, file, NAMED("attention_norm"), ELEMENT_FLOAT, hidden, 0),
        .inner_norm = weights(model, file, NAMED("inner_norm"), ELEMENT_FLOAT, hidden, 0),
        .query = quantised(model, file, NAMED("query"), all, hidden),
        .key = quantised(model, file, NAMED("key"), keys, hidden),
        .value = quantised(model, file, NAMED("value"), keys, hidden),
        .output = quantised(model, file, NAMED("output"), hidden, all),
        .gate = quantised(model, file, NAMED("gate"), inner, hidden),
        .up = quantised(model, file, NAMED("up"), inner, hidden),
        .down = quantised(model, file, NAMED("down"), hidden, inner),
        .keys = room(model, ELEMENT_FLOAT, pages * PAGE, keys),
        .values = room(model, ELEMENT_FLOAT, pages * PAGE, keys),
    };
#undef NAMED
}

static struct configuration read_configuration(const struct safetensors *file) {
    const struct configuration found = {
        .layers = safetensors_whole(file, "layers", 1, 256),
        .hidden = safetensors_whole(file, "hidden", 1, 65536),
        .heads = safetensors_whole(file, "heads", 1, 1024),
        .key_heads = safetensors_whole(file, "key_heads", 1, 1024),
        .head_size = safetensors_whole(file, "head_size", 2, LARGEST_HEAD),
        .inner = safetensors_whole(file, "inner", 1, 262144),
        .vocabulary = safetensors_whole(file, "vocabulary", 257, 1000000),
        .context = safetensors_whole(file, "context", 2, CHUNK * LARGEST_CHUNKS),
        .epsilon = (float)safetensors_number(file, "epsilon", 0, 1),
        .base = (float)safetensors_number(file, "base", 1, 1e9),
    };
    if (found.heads % found.key_heads || found.head_size % 2)
        fail("`%s`: heads must be a multiple of key_heads, head_size even", file->path);
    return found;
}

/* Sines and cosines come from the host's maths library for every device, and once. */
static void fill_angles(struct model *model) {
    const int half = model->configuration.head_size / 2, context = model->configuration.context;
    float *cosines = take_memory((size_t)(context * half), sizeof *cosines);
    float *sines = take_memory((size_t)(context * half), sizeof *sines);
    for (int i = 0; i < context * half; i++) {
        const double angle = i / half * pow(model->configuration.base, -(double)(i % half) / half);
        cosines[i] = (float)cos(angle);
        sines[i] = (float)sin(angle);
    }
    model->cosines = room(model, ELEMENT_FLOAT, context, half);
    model->sines = room(model, ELEMENT_FLOAT, context, half);
    model->device->write(model->device, &model->cosines, cosines);
    model->device->write(model->device, &model->sines, sines);
    model->device->wait(model->device);
    free(cosines);
    free(sines);
}

void model_open(struct model *model, struct device *device, const char *path, int buffers) {
    struct safetensors file = safetensors_open(path);
    *model = (struct model){.configuration = read_configuration(&file), .device = device, .buffers = buffers};
    const struct configuration *sizes = &model->configuration;
    model->table = quantised(model, &file, "table", sizes->vocabulary, sizes->hidden);
    model->head = quantised(model, &file, "head", sizes->vocabulary, sizes->hidden);
    model->last_norm = weights(model, &file, "last_norm", ELEMENT_FLOAT, sizes->hidden, 0);
    model->layers = take_memory((size_t)sizes->layers, sizeof *model->layers);
    for (int i = 0; i < sizes->layers; i++) model->layers[i] = read_layer(model, &file, i);
    fill_angles(model);
    safetensors_close(&file);
    const long moving = 3 * MOST_ROWS + MOST_STREAMS * model_stream_pages(model);
    const long keys = (long)sizes->key_heads * sizes->head_size, all = (long)sizes->heads * sizes->head_size;
    model->moving = take_memory((size_t)moving, sizeof *model->moving);
    model->inputs = room(model, ELEMENT_INT32, buffers, moving);
    model->stand = room(model, ELEMENT_FLOAT, MOST_ROWS, sizes->hidden);
    model->normed = room(model, ELEMENT_FLOAT, MOST_ROWS, sizes->hidden);
    model->query = room(model, ELEMENT_FLOAT, MOST_ROWS, all);
    model->key = room(model, ELEMENT_FLOAT, MOST_ROWS, keys);
    model->value = room(model, ELEMENT_FLOAT, MOST_ROWS, keys);
    model->mixed = room(model, ELEMENT_FLOAT, MOST_ROWS, all);
    model->gate = room(model, ELEMENT_FLOAT, MOST_ROWS, sizes->inner);
    model->up = room(model, ELEMENT_FLOAT, MOST_ROWS, sizes->inner);
    const long partials = (long)sizes->heads * model_chunks(sizes->context) * PARTIAL(sizes->head_size);
    model->partials = room(model, ELEMENT_FLOAT, MOST_ROWS, partials);
    model->logits = room(model, ELEMENT_FLOAT, MOST_ROWS, sizes->vocabulary);
}

void model_each(struct model *model, void (*visit)(const struct tensor *tensor, void *user), void *user) {
    const struct tensor *own[] = {
        &model->table.weights, &model->table.scales, &model->head.weights, &model->head.scales,
        &model->last_norm,     &model->cosines,      &model->sines,        &model->inputs,
        &model->stand,         &model->normed,       &model->query,        &model->key,
        &model->value,         &model->mixed,        &model->gate,         &model->up,
        &model->partials,      &model->logits};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) visit(own[i], user);
    for (int i = 0; i < model->configuration.layers; i++) {
        struct layer *layer = &model->layers[i];
        struct quantised *pairs[] = {&layer->query, &layer->key, &layer->value, &layer->output,
                                     &layer->gate,  &layer->up,  &layer->down};
        for (size_t j = 0; j < sizeof pairs / sizeof *pairs; j++)
            visit(&pairs[j]->weights, user), visit(&pairs[j]->scales, user);
        visit(&layer->attention_norm, user), visit(&layer->inner_norm, user);
        visit(&layer->keys, user), visit(&layer->values, user);
    }
}

static void drop(const struct tensor *tensor, void *user) {
    (void)user;
    tensor_drop((struct tensor *)tensor);
}

void model_close(struct model *model) {
    model_each(model, drop, NULL);
    free(model->layers);
    free(model->moving);
    *model = (struct model){0};
}
