/* One pass: what each row goes through, from its token to its logits. */
#include <string.h>

#include "model.h"

/* The inputs of a buffer, in one column. */
static struct tensor open_inputs(struct model *model, int buffer) {
    struct tensor row = tensor_rows(&model->inputs, buffer, 1);
    struct tensor inputs = tensor_reshape(&row, 2, (long[]){model->inputs.shape[1], 1});
    tensor_drop(&row);
    return inputs;
}

void model_write(struct model *model, const struct batch *batch) {
    struct tensor inputs = open_inputs(model, batch->buffer);
    const int pages = model_stream_pages(model), rows = batch->shape.streams * batch->shape.window;
    int *tokens = model->moving, *positions = tokens + MOST_ROWS, *streams = positions + MOST_ROWS;
    memset(model->moving, 0, tensor_bytes(&inputs));
    for (int row = 0; row < MOST_ROWS; row++) {
        positions[row] = row < rows ? batch->positions[row] : -1;
        tokens[row] = positions[row] < 0 ? 0 : batch->tokens[row];
        streams[row] = row < rows ? row / batch->shape.window : 0;
    }
    for (int stream = 0; stream < batch->shape.streams; stream++)
        if (batch->pages[stream])
            memcpy(streams + MOST_ROWS + stream * pages, batch->pages[stream], (size_t)pages * sizeof(int));
    model->device->write(model->device, &inputs, model->moving);
    tensor_drop(&inputs);
}

/* The views of one pass: the first rows of each tensor of the model. */
struct views {
    struct tensor tokens, stand, normed, query, key, value, mixed, gate, up, partials, logits;
    struct places places;
};

static struct views open_views(struct model *model, long rows, int buffer) {
    struct tensor inputs = open_inputs(model, buffer);
    struct tensor table = tensor_rows(&inputs, 3 * MOST_ROWS, inputs.shape[0] - 3 * MOST_ROWS);
    struct views views = {
        .tokens = tensor_rows(&inputs, 0, rows),
        .stand = tensor_rows(&model->stand, 0, rows),
        .normed = tensor_rows(&model->normed, 0, rows),
        .query = tensor_rows(&model->query, 0, rows),
        .key = tensor_rows(&model->key, 0, rows),
        .value = tensor_rows(&model->value, 0, rows),
        .mixed = tensor_rows(&model->mixed, 0, rows),
        .gate = tensor_rows(&model->gate, 0, rows),
        .up = tensor_rows(&model->up, 0, rows),
        .partials = tensor_rows(&model->partials, 0, rows),
        .logits = tensor_rows(&model->logits, 0, rows),
        .places = {tensor_rows(&inputs, MOST_ROWS, rows), tensor_rows(&inputs, 2 * MOST_ROWS, rows),
                   tensor_reshape(&table, 2, (long[]){MOST_STREAMS, model_stream_pages(model)})},
    };
    tensor_drop(&table);
    tensor_drop(&inputs);
    return views;
}

static void close_views(struct views *views) {
    struct tensor *all[] = {&views->tokens,         &views->stand,       &views->normed,
                            &views->query,          &views->key,         &views->value,
                            &views->mixed,          &views->gate,        &views->up,
                            &views->partials,       &views->logits,      &views->places.positions,
                            &views->places.streams, &views->places.pages};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tensor_drop(all[i]);
}

static void multiply(struct device *device, const struct tensor *out, const struct tensor *in,
                     const struct quantised *by) {
    device->multiply(device, out, in, &by->weights, &by->scales);
}

static void attend(struct model *model, struct layer *layer, struct views *views, int chunks) {
    struct device *device = model->device;
    const struct configuration *sizes = &model->configuration;
    const struct attention attention = {&views->query, &layer->keys, &layer->values,   &views->partials, &views->places,
                                        chunks,        sizes->heads, sizes->key_heads, sizes->head_size};
    device->normalise(device, &views->normed, &views->stand, &layer->attention_norm, sizes->epsilon);
    multiply(device, &views->query, &views->normed, &layer->query);
    multiply(device, &views->key, &views->normed, &layer->key);
    multiply(device, &views->value, &views->normed, &layer->value);
    device->rotate(device, &views->query, &views->places, &model->cosines, &model->sines, sizes->head_size);
    device->rotate(device, &views->key, &views->places, &model->cosines, &model->sines, sizes->head_size);
    device->store(device, &layer->keys, &views->key, &views->places);
    device->store(device, &layer->values, &views->value, &views->places);
    device->attend(device, &views->mixed, &attention);
    multiply(device, &views->normed, &views->mixed, &layer->output);
    device->add(device, &views->stand, &views->normed);
}

static void feed_forward(struct model *model, struct layer *layer, struct views *views) {
    struct device *device = model->device;
    device->normalise(device, &views->normed, &views->stand, &layer->inner_norm, model->configuration.epsilon);
    multiply(device, &views->gate, &views->normed, &layer->gate);
    multiply(device, &views->up, &views->normed, &layer->up);
    device->gate(device, &views->gate, &views->gate, &views->up);
    multiply(device, &views->normed, &views->gate, &layer->down);
    device->add(device, &views->stand, &views->normed);
}

void model_launch(struct model *model, struct shape shape, int buffer) {
    struct device *device = model->device;
    struct views views = open_views(model, (long)shape.streams * shape.window, buffer);
    device->embed(device, &views.stand, &views.tokens, &model->table.weights, &model->table.scales);
    for (int i = 0; i < model->configuration.layers; i++) {
        attend(model, &model->layers[i], &views, shape.chunks);
        feed_forward(model, &model->layers[i], &views);
    }
    device->normalise(device, &views.normed, &views.stand, &model->last_norm, model->configuration.epsilon);
    multiply(device, &views.logits, &views.normed, &model->head);
    close_views(&views);
}

void model_read(struct model *model, struct shape shape, float *logits) {
    struct tensor rows = tensor_rows(&model->logits, 0, (long)shape.streams * shape.window);
    model->device->read(model->device, &rows, logits);
    tensor_drop(&rows);
}
