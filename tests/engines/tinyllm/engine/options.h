/* What the command line and the environment say. */
#ifndef TINYLLM_OPTIONS_H
#define TINYLLM_OPTIONS_H

#include "common.h"

#define GRAPHS_SWITCH "TINYLLM_GRAPHS"
#define MOST_PROMPTS 64
#define MOST_ROUNDS 1000

struct options {
    bool graphs; /* of the environment */
    const char *model, *device, *encode;
    bool once, parity, statistics, logits, ignore_end;
    const char *prompts[MOST_PROMPTS];
    int prompt_count, tokens, window, held, dedicated, buffers, rounds, port;
    uint64_t seed, floor;
    double temperature;
};

/* Ends the program if a word or a value is none that it knows; reads no file. */
struct options options_read(int count, char **words);

#endif
