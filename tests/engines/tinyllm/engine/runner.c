#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "hook.h"

struct mark {
    uint64_t hash, base;
};

static void mix_bytes(struct mark *mark, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) mark->hash = (mark->hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
}

static void mix(struct mark *mark, uint64_t value) {
    mix_bytes(mark, &value, sizeof value);
}

/* Addresses are told from where the hook's range begins: a restore may have the whole range elsewhere. */
static void mix_tensor(const struct tensor *tensor, void *user) {
    struct mark *mark = user;
    mix(mark, tensor_address(tensor) - mark->base);
    mix(mark, tensor_bytes(tensor));
}

/* Of all that graphs are built for and that no key names. */
static char *make_fingerprint(struct model *model) {
    struct mark mark = {0xCBF29CE484222325u, hook_range_base()};
    struct text text = {0};
    const struct configuration *sizes = &model->configuration;
    size_t image_bytes;
    const void *image = cuda_image(model->device, &image_bytes);
    const int numbers[] = {sizes->layers,    sizes->hidden, sizes->heads,      sizes->key_heads,
                           sizes->head_size, sizes->inner,  sizes->vocabulary, sizes->context};
    mix_bytes(&mark, numbers, sizeof numbers);
    mix_bytes(&mark, &sizes->epsilon, sizeof sizes->epsilon);
    mix_bytes(&mark, image, image_bytes);
    model_each(model, mix_tensor, &mark);
    text_format(&text, "%016llx", (unsigned long long)mark.hash);
    return text.bytes;
}

void runner_open(struct runner *runner, struct model *model, const struct runner_options *options) {
    static const char *const names[] = {"streams", "window", "chunks", "buffer"};
    *runner = (struct runner){.model = model, .held = options->held};
    if (!options->graphs) return;
    char *fingerprint = make_fingerprint(model);
    const foundry_keyed_options keyed = {.set = GRAPH_SET,
                                         .stream = cuda_stream(model->device),
                                         .names = names,
                                         .shape_count = 3,
                                         .moving_count = 1,
                                         .most = (unsigned)options->held,
                                         .dedicated = (unsigned)options->dedicated,
                                         .floor = options->floor,
                                         .inputs = fingerprint};
    runner->cache = foundry_keyed_open(&keyed);
    if (!runner->cache) fail("graphs cannot be kept: %s", foundry_keyed_reason(NULL));
    free(fingerprint);
}

void runner_close(struct runner *runner) {
    if (runner->cache) foundry_keyed_close(runner->cache);
    *runner = (struct runner){0};
}

int runner_launch(void *user, void *stream) {
    const struct runner_work *work = user;
    (void)stream; /* the device's */
    model_launch(work->model, work->batch->shape, work->batch->buffer);
    return 0;
}

void runner_key(const struct batch *batch, uint64_t *values) {
    values[0] = (uint64_t)batch->shape.streams;
    values[1] = (uint64_t)batch->shape.window;
    values[2] = (uint64_t)batch->shape.chunks;
    values[3] = (uint64_t)batch->buffer;
}

static void warm_one(struct runner *runner, struct batch *batch) {
    const uint64_t restored = runner_counts(runner).restored;
    struct runner_work work = {runner->model, batch};
    uint64_t values[4];
    memset(batch->positions, -1, sizeof batch->positions);
    model_write(runner->model, batch);
    runner_key(batch, values);
    const int result = foundry_keyed_warm(runner->cache, values, runner_launch, &work);
    if (result > 0) fail("%s", foundry_keyed_reason(runner->cache));
    if (result || (!strcmp(hook_mode(), "restore") && runner_counts(runner).restored == restored))
        fprintf(stderr, "tinyllm: %s\n", foundry_keyed_reason(runner->cache));
}

void runner_warm(struct runner *runner) {
    static const int streams[] = {4, 2, 1};
    const struct configuration *sizes = &runner->model->configuration;
    if (!runner->cache) return;
    for (int chunks = model_chunks(sizes->context); chunks; chunks--)
        for (int i = 0; i < 3; i++)
            for (int window = LARGEST_WINDOW; window && (int)runner_counts(runner).held < runner->held; window--)
                warm_one(runner, &(struct batch){.shape = {streams[i], window, chunks}});
    hook_commit();
}

void runner_pass(struct runner *runner, struct batch *batch, float *logits) {
    struct runner_work work = {runner->model, batch};
    uint64_t values[4];
    batch->buffer = (int)(runner->passes++ % runner->model->buffers);
    model_write(runner->model, batch);
    if (runner->cache) {
        runner_key(batch, values);
        if (foundry_keyed_run(runner->cache, values, runner_launch, &work, NULL))
            fail("%s", foundry_keyed_reason(runner->cache));
    } else {
        runner_launch(&work, NULL);
        runner->eager++;
    }
    model_read(runner->model, batch->shape, logits);
}

foundry_keyed_counts runner_counts(const struct runner *runner) {
    foundry_keyed_counts counts = {.eager = (uint64_t)runner->eager};
    return runner->cache ? foundry_keyed_count(runner->cache) : counts;
}
