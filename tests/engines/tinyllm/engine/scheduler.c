#include "scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "sampler.h"

#define ROW_FUNCTION static inline __attribute__((unused))
#include "row_math.h"

void scheduler_open(struct scheduler *scheduler, struct runner *runner, int end, int window) {
    const int pages = MOST_STREAMS * model_stream_pages(runner->model);
    *scheduler = (struct scheduler){.runner = runner, .end = end, .window = window};
    scheduler->free_pages = take_memory((size_t)pages, sizeof *scheduler->free_pages);
    while (scheduler->free_count < pages) {
        scheduler->free_pages[scheduler->free_count] = pages - 1 - scheduler->free_count;
        scheduler->free_count++;
    }
    scheduler->logits = take_memory((size_t)(MOST_ROWS * runner->model->configuration.vocabulary), sizeof(float));
}

void scheduler_close(struct scheduler *scheduler) {
    free(scheduler->free_pages);
    free(scheduler->logits);
    *scheduler = (struct scheduler){0};
}

struct request *request_make(const int *prompt, int prompt_count, int more) {
    struct request *request = take_memory(1, sizeof *request);
    request->limit = prompt_count + more;
    request->tokens = take_memory((size_t)request->limit, sizeof *request->tokens);
    memcpy(request->tokens, prompt, (size_t)prompt_count * sizeof *prompt);
    request->prompt_count = request->count = prompt_count;
    return request;
}

void request_drop(struct request *request) {
    if (!request) return;
    free(request->tokens);
    free(request->pages);
    free(request);
}

void scheduler_add(struct scheduler *scheduler, struct request *request) {
    struct request **last = &scheduler->waiting;
    while (*last) last = &(*last)->next;
    *last = request;
}

bool scheduler_busy(const struct scheduler *scheduler) {
    for (int i = 0; i < MOST_STREAMS; i++)
        if (scheduler->streams[i]) return true;
    return scheduler->waiting != NULL;
}

static void admit(struct scheduler *scheduler) {
    for (int i = 0; i < MOST_STREAMS && scheduler->waiting; i++) {
        if (scheduler->streams[i]) continue;
        struct request *request = scheduler->waiting;
        scheduler->waiting = request->next;
        request->next = NULL;
        request->pages = take_memory((size_t)model_stream_pages(scheduler->runner->model), sizeof *request->pages);
        scheduler->streams[i] = request;
    }
}

/* The tokens that followed the last two the time before, if they came before. */
static int guess(const struct request *request, int most, int *drafts) {
    const int *tokens = request->tokens, count = request->count;
    for (int at = count - 2; at > 0 && most > 0; at--) {
        if (tokens[at - 1] != tokens[count - 2] || tokens[at] != tokens[count - 1]) continue;
        int found = 0;
        while (found < most && at + 1 + found < count) drafts[found] = tokens[at + 1 + found], found++;
        return found;
    }
    return 0;
}

/* The tokens of a stream's window, known ones first. */
static int fill_window(struct scheduler *scheduler, const struct request *request, int *window) {
    const int known = request->count - request->computed;
    const int rows = known < scheduler->window ? known : scheduler->window;
    memcpy(window, request->tokens + request->computed, (size_t)rows * sizeof *window);
    if (rows < known) return rows;
    const int room = scheduler->window - rows, wanted = request->limit - request->count - 1;
    const int drafts = guess(request, room < wanted ? room : wanted, window + rows);
    scheduler->drafts += drafts;
    return rows + drafts;
}

static void take_pages(struct scheduler *scheduler, struct request *request, int positions) {
    while (request->page_count * PAGE < positions)
        request->pages[request->page_count++] = scheduler->free_pages[--scheduler->free_count];
}

/* Takes over what the window's rows gave, up to the first draft that was wrong. */
static void take_tokens(struct scheduler *scheduler, struct request *request, const int *window, int rows,
                        const float *logits) {
    const int vocabulary = scheduler->runner->model->configuration.vocabulary, start = request->computed;
    for (int row = 0; row < rows && !request->done; row++, logits += vocabulary) {
        const int position = start + row;
        request->computed = position + 1;
        if (position + 1 < request->count) continue;
        const int token = sample(logits, vocabulary, request->temperature, request->seed, position);
        request->tokens[request->count++] = token;
        scheduler->tokens++;
        if (scheduler->first_token == 0) scheduler->first_token = seconds_now();
        request->done = request->count == request->limit || (token == scheduler->end && !request->ignore_end);
        if (row + 1 < rows && window[row + 1] != token) break;
        if (row + 1 < rows) scheduler->drafts_kept++;
    }
}

static void leave(struct scheduler *scheduler, struct request **stream) {
    struct request *request = *stream;
    while (request->page_count) scheduler->free_pages[scheduler->free_count++] = request->pages[--request->page_count];
    *stream = NULL;
}

void scheduler_step(struct scheduler *scheduler) {
    struct batch batch = {.shape = {1, 1, 1}};
    struct request **active[MOST_STREAMS];
    int windows[MOST_STREAMS][LARGEST_WINDOW], rows[MOST_STREAMS], count = 0;
    admit(scheduler);
    for (int i = 0; i < MOST_STREAMS; i++) {
        struct request *request = scheduler->streams[i];
        if (!request) continue;
        rows[count] = fill_window(scheduler, request, windows[count]);
        const int positions = request->computed + rows[count], chunks = model_chunks(positions);
        take_pages(scheduler, request, positions);
        if (rows[count] > batch.shape.window) batch.shape.window = rows[count];
        if (chunks > batch.shape.chunks) batch.shape.chunks = chunks;
        active[count++] = &scheduler->streams[i];
    }
    if (!count) return;
    while (batch.shape.streams < count) batch.shape.streams *= 2;
    for (int row = 0; row < MOST_ROWS; row++) batch.positions[row] = -1;
    for (int stream = 0; stream < count; stream++) {
        const int first = stream * batch.shape.window;
        batch.pages[stream] = (*active[stream])->pages;
        for (int row = 0; row < rows[stream]; row++) {
            batch.tokens[first + row] = windows[stream][row];
            batch.positions[first + row] = (*active[stream])->computed + row;
        }
    }
    runner_pass(scheduler->runner, &batch, scheduler->logits);
    scheduler->passes++;
    for (int stream = 0; stream < count; stream++) {
        const long first = (long)stream * batch.shape.window * scheduler->runner->model->configuration.vocabulary;
        take_tokens(scheduler, *active[stream], windows[stream], rows[stream], scheduler->logits + first);
        if ((*active[stream])->done) leave(scheduler, active[stream]);
    }
}
