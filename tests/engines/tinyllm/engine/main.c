#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "hook.h"
#include "json.h"
#include "options.h"
#include "scheduler.h"
#include "server.h"
#include "tokenizer.h"

static char *path_in(const char *folder, const char *name) {
    struct text path = {0};
    text_format(&path, "%s/%s", folder, name);
    return path.bytes;
}

static struct tokenizer open_tokenizer(const char *folder) {
    char *path = path_in(folder, "merges.txt");
    struct tokenizer tokenizer = tokenizer_open(path);
    free(path);
    return tokenizer;
}

static void add_tokens(struct text *text, const int *tokens, int count) {
    text_add(text, "[", 1);
    for (int i = 0; i < count; i++) text_format(text, "%s%d", i ? ", " : "", tokens[i]);
    text_add(text, "]", 1);
}

static void print_line(struct text *line) {
    puts(line->bytes);
    text_drop(line);
}

static int encode(const struct options *options) {
    struct tokenizer tokenizer = open_tokenizer(options->model);
    const size_t length = strlen(options->encode);
    int *tokens = take_memory(length, sizeof *tokens);
    struct text line = {0};
    add_tokens(&line, tokens, tokenizer_encode(&tokenizer, options->encode, length, tokens));
    print_line(&line);
    free(tokens);
    tokenizer_close(&tokenizer);
    return EXIT_SUCCESS;
}

/* Runs the first prompt token by token and prints the logits of its last one. */
static void print_logits(struct runner *runner, const struct request *request) {
    const int vocabulary = runner->model->configuration.vocabulary, pages = model_stream_pages(runner->model);
    float *logits = take_memory((size_t)vocabulary, sizeof *logits);
    int *table = take_memory((size_t)pages, sizeof *table);
    struct text line = {0};
    for (int i = 0; i < pages; i++) table[i] = i;
    for (int i = 0; i < request->prompt_count; i++) {
        struct batch batch = {.shape = {1, 1, model_chunks(i + 1)}, .pages = {table}};
        batch.tokens[0] = request->tokens[i];
        batch.positions[0] = i;
        runner_pass(runner, &batch, logits);
    }
    text_format(&line, "{\"logits\": [");
    for (int i = 0; i < vocabulary; i++) text_format(&line, "%s%.9g", i ? ", " : "", (double)logits[i]);
    text_format(&line, "]}");
    print_line(&line);
    free(logits);
    free(table);
}

static void print_result(const struct tokenizer *tokenizer, const char *prompt, const struct request *request) {
    struct text line = {0}, made = {0};
    const int *tokens = request->tokens + request->prompt_count;
    tokenizer_decode(tokenizer, tokens, request->count - request->prompt_count, &made);
    text_format(&line, "{\"prompt\": ");
    json_write_string(&line, prompt, strlen(prompt));
    text_format(&line, ", \"tokens\": ");
    add_tokens(&line, tokens, request->count - request->prompt_count);
    text_format(&line, ", \"text\": ");
    json_write_string(&line, made.bytes, made.length);
    text_format(&line, "}");
    print_line(&line);
    text_drop(&made);
}

/* When one round of --once began and ended, and how many tokens it made. */
struct round {
    double begin, end;
    long tokens;
};

static double rate(const struct round *round) {
    return (double)round->tokens / (round->end - round->begin);
}

static void print_statistics(const struct scheduler *scheduler, double start, const struct round *rounds, int count) {
    const struct runner *runner = scheduler->runner;
    const foundry_keyed_counts counts = runner_counts(runner);
    fprintf(stderr, "{\"mode\": \"%s\", \"passes\": %ld", hook_mode(), scheduler->passes);
#define X(name) fprintf(stderr, ", \"" #name "\": %llu", (unsigned long long)counts.name);
    RUNNER_COUNTS(X)
#undef X
    fprintf(
        stderr,
        ", \"drafts\": %ld, \"drafts_kept\": %ld, \"hook_stream_captures\": %llu, \"hook_graphs_instantiated\": %llu, "
        "\"hook_kernel_launches\": %llu, \"seconds_ready\": %.6f, \"seconds_first_token\": %.6f, "
        "\"tokens_a_second\": %.1f, \"rounds\": [",
        scheduler->drafts, scheduler->drafts_kept, (unsigned long long)hook_counter("stream_captures"),
        (unsigned long long)hook_counter("graphs_instantiated"), (unsigned long long)hook_counter("kernel_launches"),
        rounds[0].begin - start, scheduler->first_token - start, rate(&rounds[0]));
    for (int i = 0; i < count; i++) fprintf(stderr, "%s%.1f", i ? ", " : "", rate(&rounds[i]));
    fprintf(stderr, "]}\n");
}

static void start_requests(const struct options *options, struct scheduler *scheduler,
                           const struct tokenizer *tokenizer, struct request **requests) {
    for (int i = 0; i < options->prompt_count; i++) {
        const struct generation wanted = {options->prompts[i],  strlen(options->prompts[i]),
                                          options->tokens,      options->seed + (uint64_t)i,
                                          options->temperature, options->ignore_end};
        const char *problem = generation_start(&wanted, tokenizer, scheduler, &requests[i]);
        if (problem) refuse("prompt %d: %s", i + 1, problem);
    }
}

static void require_same(const struct request *one, const struct request *other, int round, int prompt) {
    if (one->count != other->count || memcmp(one->tokens, other->tokens, (size_t)one->count * sizeof *one->tokens))
        fail("round %d gives other tokens for prompt %d than the first", round + 1, prompt + 1);
}

static int run_once(const struct options *options, struct scheduler *scheduler, const struct tokenizer *tokenizer,
                    double start) {
    struct request *first[MOST_PROMPTS], *again[MOST_PROMPTS];
    struct round *rounds = take_memory((size_t)options->rounds, sizeof *rounds);
    for (int number = 0; number < options->rounds; number++) {
        struct request **requests = number ? again : first;
        const long before = scheduler->tokens;
        rounds[number].begin = seconds_now();
        start_requests(options, scheduler, tokenizer, requests);
        if (options->logits && !number) print_logits(scheduler->runner, requests[0]);
        while (scheduler_busy(scheduler)) scheduler_step(scheduler);
        rounds[number].end = seconds_now();
        rounds[number].tokens = scheduler->tokens - before;
        for (int i = 0; number && i < options->prompt_count; i++) {
            require_same(first[i], again[i], number, i);
            request_drop(again[i]);
        }
    }
    for (int i = 0; i < options->prompt_count; i++) {
        print_result(tokenizer, options->prompts[i], first[i]);
        request_drop(first[i]);
    }
    if (options->statistics) print_statistics(scheduler, start, rounds, options->rounds);
    free(rounds);
    return EXIT_SUCCESS;
}

int main(int count, char **words) {
    const double start = seconds_now();
    const struct options options = options_read(count, words);
    struct model model;
    struct runner runner;
    struct scheduler scheduler;
    if (options.encode) return encode(&options);
    struct tokenizer tokenizer = open_tokenizer(options.model);
    char *path = path_in(options.model, "model.safetensors");
    model_open(&model, strcmp(options.device, "cpu") ? cuda_open() : cpu_open(), path, options.buffers);
    free(path);
    if (model.configuration.vocabulary != tokenizer.count)
        fail("the model has %d tokens, the tokenizer %d", model.configuration.vocabulary, tokenizer.count);
    const struct runner_options kept = {options.graphs, options.held, options.dedicated, options.floor};
    runner_open(&runner, &model, &kept);
    scheduler_open(&scheduler, &runner, tokenizer.end, options.window);
    runner_warm(&runner);
    const int code = options.parity ? runner_parity(&runner)
                     : options.once ? run_once(&options, &scheduler, &tokenizer, start)
                                    : serve(options.port, &scheduler, &tokenizer);
    scheduler_close(&scheduler);
    runner_close(&runner);
    model_close(&model);
    tokenizer_close(&tokenizer);
    return code;
}
