/* Passes through graphs against the same launch by launch. */
#include <stdio.h>
#include <stdlib.h>

#include "runner.h"

#define ROW_FUNCTION static inline __attribute__((unused))
#include "row_math.h"

static const int turns[] = {0, 0, 0, 1, 1};
#define TURNS ((unsigned)(sizeof turns / sizeof *turns))

struct rounds {
    struct runner *runner;
    struct batch batch;
    int *pages; /* of each stream, all of its own */
    foundry_parity_span *spans;
    unsigned count;
};

static void add_span(const struct tensor *tensor, void *user) {
    struct rounds *rounds = user;
    if (rounds->spans)
        rounds->spans[rounds->count] = (foundry_parity_span){"tensor", tensor_address(tensor), tensor_bytes(tensor)};
    rounds->count++;
}

/* Each shape in each buffer by turns, its rows up to the last position that the chunks hold. */
static int begin_round(void *user, unsigned round, uint64_t *values) {
    struct rounds *rounds = user;
    struct model *model = rounds->runner->model;
    const int context = model->configuration.context, chunks = model_chunks(context);
    const int index = (int)(round / TURNS), turn = (int)(round % TURNS);
    struct batch *batch = &rounds->batch;
    batch->shape =
        (struct shape){1 << index / chunks / LARGEST_WINDOW, 1 + index / chunks % LARGEST_WINDOW, 1 + index % chunks};
    batch->buffer = turns[turn];
    const int end = batch->shape.chunks == chunks ? context : batch->shape.chunks * CHUNK;
    for (int stream = 0; stream < batch->shape.streams; stream++) {
        batch->pages[stream] = rounds->pages + stream * model_stream_pages(model);
        for (int row = 0; row < batch->shape.window; row++) {
            const int at = stream * batch->shape.window + row;
            const int position = end - batch->shape.window + row - stream - turn;
            batch->positions[at] = position < 0 ? -1 : position;
            batch->tokens[at] = (int)((unsigned)(at + 7 * (int)round + 1) % (unsigned)model->configuration.vocabulary);
        }
    }
    model_write(model, batch);
    model->device->wait(model->device);
    runner_key(batch, values);
    return 0;
}

static int launch_round(void *user, void *stream) {
    const struct rounds *rounds = user;
    struct runner_work work = {rounds->runner->model, &rounds->batch};
    return runner_launch(&work, stream);
}

int runner_parity(struct runner *runner) {
    struct model *model = runner->model;
    const int pages = MOST_STREAMS * model_stream_pages(model);
    struct rounds rounds = {.runner = runner, .pages = take_memory((size_t)pages, sizeof(int))};
    foundry_parity_report report;
    char line[1024];
    for (int i = 0; i < pages; i++) rounds.pages[i] = i;
    model_each(model, add_span, &rounds);
    rounds.spans = take_memory(rounds.count, sizeof *rounds.spans);
    rounds.count = 0;
    model_each(model, add_span, &rounds);
    const foundry_parity_span logits = {"logits", tensor_address(&model->logits), tensor_bytes(&model->logits)};
    const foundry_parity_options options = {.cache = runner->cache,
                                            .state = rounds.spans,
                                            .outputs = &logits,
                                            .state_count = rounds.count,
                                            .output_count = 1,
                                            .rounds = TURNS * 3 * LARGEST_WINDOW *
                                                      (unsigned)model_chunks(model->configuration.context),
                                            .begin = begin_round,
                                            .record = launch_round,
                                            .user = &rounds};
    const int verdict = foundry_parity_run(&options, &report);
    foundry_parity_line(runner->cache, &report, line, sizeof line);
    puts(line);
    free(rounds.spans);
    free(rounds.pages);
    return verdict;
}
