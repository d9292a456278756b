#include "generation.h"

#include <stdlib.h>

const char *generation_start(const struct generation *wanted, const struct tokenizer *tokenizer,
                             struct scheduler *scheduler, struct request **request) {
    static const char too_long[] = "prompt and tokens are longer than the context";
    const int context = scheduler->runner->model->configuration.context;
    if (wanted->length > (size_t)context * tokenizer->longest) return too_long;
    int *prompt = take_memory(wanted->length + 1, sizeof *prompt);
    int count = tokenizer_encode(tokenizer, wanted->prompt, wanted->length, prompt);
    if (!count) prompt[count++] = tokenizer->end;
    const bool fits = wanted->tokens <= context && count <= context - wanted->tokens;
    if (fits) {
        *request = request_make(prompt, count, wanted->tokens);
        (*request)->seed = wanted->seed;
        (*request)->temperature = wanted->temperature;
        (*request)->ignore_end = wanted->ignore_end;
        scheduler_add(scheduler, *request);
    }
    free(prompt);
    return fits ? NULL : too_long;
}
