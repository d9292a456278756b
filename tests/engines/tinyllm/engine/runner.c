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
    text_format(&text, "tinyllm 1 %016llx", (unsigned long long)mark.hash);
    return text.bytes;
}

void runner_open(struct runner *runner, struct model *model, bool graphs, int most_held) {
    *runner = (struct runner){.model = model, .graphs = graphs, .most_held = most_held};
    if (graphs) runner->fingerprint = make_fingerprint(model);
}

static void drop_graph(struct runner *runner, struct held_graph *held) {
    if (held->exec) cuda_drop_graph(runner->model->device, held->exec);
    *held = (struct held_graph){0};
}

void runner_close(struct runner *runner) {
    while (runner->held_count) drop_graph(runner, &runner->held[--runner->held_count]);
    free(runner->fingerprint);
    *runner = (struct runner){0};
}

static void name_key(struct shape shape, char *key, size_t size) {
    snprintf(key, size, "streams=%d window=%d chunks=%d", shape.streams, shape.window, shape.chunks);
}

static struct held_graph *find_held(struct runner *runner, struct shape shape) {
    for (int i = 0; i < runner->held_count; i++)
        if (!memcmp(&runner->held[i].shape, &shape, sizeof shape)) return &runner->held[i];
    return NULL;
}

/* A place for one more graph. */
static struct held_graph *make_room(struct runner *runner) {
    if (runner->held_count < runner->most_held) return &runner->held[runner->held_count++];
    struct held_graph *oldest = runner->held;
    for (int i = 1; i < runner->held_count; i++)
        if (runner->held[i].last_used < oldest->last_used) oldest = &runner->held[i];
    drop_graph(runner, oldest);
    runner->dropped++;
    return oldest;
}

static void replay(struct runner *runner, struct held_graph *held) {
    held->last_used = ++runner->clock;
    runner->replayed++;
    if (held->restored)
        hook_launch(held->restored, cuda_stream(runner->model->device));
    else
        cuda_launch_graph(runner->model->device, held->exec);
}

static struct held_graph *hold_restored(struct runner *runner, struct shape shape, const char *key) {
    void *graph = hook_find(GRAPH_SET, key, runner->fingerprint);
    if (!graph) return NULL;
    struct held_graph *held = make_room(runner);
    *held = (struct held_graph){.shape = shape, .restored = graph, .last_used = ++runner->clock};
    runner->restored++;
    hook_count("warm_ups_skipped", 1);
    hook_count("captures_skipped", 1);
    return held;
}

struct work {
    struct model *model;
    struct shape shape;
};

static void launch_work(void *user) {
    const struct work *work = user;
    model_launch(work->model, work->shape);
}

static void hold_captured(struct runner *runner, struct shape shape, const char *key) {
    struct work work = {runner->model, shape};
    hook_graph_begin(GRAPH_SET, key);
    void *exec = cuda_capture(runner->model->device, launch_work, &work);
    hook_graph_end(runner->fingerprint);
    *make_room(runner) = (struct held_graph){.shape = shape, .exec = exec, .last_used = ++runner->clock};
    runner->captured++;
    hook_count("captures_run", 1);
}

static void run_eager(struct runner *runner, struct shape shape) {
    model_launch(runner->model, shape);
    runner->eager++;
}

void runner_warm(struct runner *runner) {
    static const int streams[] = {4, 2, 1};
    if (!runner->graphs) return;
    for (int chunks = model_chunks(runner->model->configuration.context); chunks; chunks--)
        for (int i = 0; i < 3; i++)
            for (int window = LARGEST_WINDOW; window && runner->held_count < runner->most_held; window--) {
                struct batch batch = {.shape = {streams[i], window, chunks}};
                char key[64];
                name_key(batch.shape, key, sizeof key);
                if (hold_restored(runner, batch.shape, key)) continue;
                memset(batch.positions, -1, sizeof batch.positions);
                hook_scratch_begin(key);
                model_write(runner->model, &batch);
                run_eager(runner, batch.shape);
                runner->model->device->wait(runner->model->device);
                hook_scratch_end();
                hook_count("warm_ups_run", 1);
                hold_captured(runner, batch.shape, key);
            }
    hook_commit();
}

static void run_keyed(struct runner *runner, struct shape shape) {
    char key[64];
    struct held_graph *held = find_held(runner, shape);
    if (held) {
        replay(runner, held);
        return;
    }
    name_key(shape, key, sizeof key);
    held = hold_restored(runner, shape, key);
    if (held) {
        replay(runner, held);
        return;
    }
    run_eager(runner, shape);
    runner->model->device->wait(runner->model->device);
    hold_captured(runner, shape, key);
}

void runner_pass(struct runner *runner, const struct batch *batch, float *logits) {
    model_write(runner->model, batch);
    if (runner->graphs)
        run_keyed(runner, batch->shape);
    else
        run_eager(runner, batch->shape);
    model_read(runner->model, batch->shape, logits);
}
