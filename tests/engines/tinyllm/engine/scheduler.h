/* Requests, and the passes that serve them: up to MOST_STREAMS at once, a window of up to LARGEST_WINDOW rows of each.
 *
 * The rows of a window are tokens that are known already (of the prompt), or one that is and drafts that were guessed
 * from the request's own text; a draft is kept if it is the token that would have been picked.
 */
#ifndef TINYLLM_SCHEDULER_H
#define TINYLLM_SCHEDULER_H

#include "runner.h"

struct request {
    uint64_t seed;
    double temperature;
    bool ignore_end; /* go on after the token that ends a text */
    int *tokens;     /* prompt, then what was made for it */
    int prompt_count, count, limit;
    bool done;

    int computed; /* positions whose keys and values are in the cache */
    int *pages;   /* NULL before it has a stream */
    int page_count;
    struct request *next; /* in the queue */
};

struct scheduler {
    struct runner *runner;
    int end;    /* the token that ends a text */
    int window; /* at most so many rows of a stream in one pass */
    struct request *streams[MOST_STREAMS];
    struct request *waiting;
    int *free_pages, free_count;
    float *logits;
    long passes, tokens, drafts, drafts_kept;
    double first_token; /* when it was made, by seconds_now(); 0 = none yet */
};

void scheduler_open(struct scheduler *scheduler, struct runner *runner, int end, int window);
void scheduler_close(struct scheduler *scheduler);

/* A request for at most `more` tokens; the prompt must leave room for them in the context. */
struct request *request_make(const int *prompt, int prompt_count, int more);
void request_drop(struct request *request);

/* The request must live until it is done; nothing else may change it until then. */
void scheduler_add(struct scheduler *scheduler, struct request *request);
bool scheduler_busy(const struct scheduler *scheduler);
/* Runs one pass for the requests that have a stream. */
void scheduler_step(struct scheduler *scheduler);

#endif
