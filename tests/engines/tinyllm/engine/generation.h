/* What a user asks for, turned into a request. */
#ifndef TINYLLM_GENERATION_H
#define TINYLLM_GENERATION_H

#include "scheduler.h"
#include "tokenizer.h"

struct generation {
    const char *prompt;
    size_t length;
    int tokens; /* at most */
    uint64_t seed;
    double temperature;
    bool ignore_end;
};

/* NULL, and the request is with the scheduler; else why it cannot be. An empty prompt is the token that ends a text. */
const char *generation_start(const struct generation *wanted, const struct tokenizer *tokenizer,
                             struct scheduler *scheduler, struct request **request);

#endif
