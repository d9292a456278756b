#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "runner.h"

static const char help[] =
    "tinyllm --model FOLDER [--device cuda|cpu] [--port N]     serve on 127.0.0.1 until SIGINT or SIGTERM\n"
    "tinyllm --model FOLDER --once --prompt TEXT [--prompt ...]  print what each prompt gives, one JSON line each\n"
    "tinyllm --model FOLDER --parity                             compare passes through graphs with those without\n"
    "tinyllm --model FOLDER --encode TEXT                        print the tokens of a text\n"
    "\n"
    "  --tokens N       at most so many for each prompt (16)\n"
    "  --seed N         of the first prompt, one more for each following one (0)\n"
    "  --temperature T  0 is greedy (0)\n"
    "  --ignore-end     go on after the token that ends a text\n"
    "  --window N       rows of a stream in one pass, 1 to 4 (4)\n"
    "  --held N         graphs that are kept at once (64)\n"
    "  --buffers N      buffers that inputs of passes lie in by turns, 1 to 4 (1): with several, graphs are updated\n"
    "  --dedicated N    instead, up to N graphs for each shape, none of which is updated (0)\n"
    "  --floor N        MiB of free device memory below which no graph is kept (0)\n"
    "  --logits         with --once: print the logits behind the first prompt, too\n"
    "  --rounds N       with --once: answer the prompts so often, with the same tokens (1)\n"
    "  --statistics     with --once: print counts and times as a JSON line on stderr\n"
    "\n"
    "TINYLLM_GRAPHS: unset or 0 launches kernel by kernel, 1 keeps a CUDA graph for each shape of a pass.\n";

static bool read_switch(void) {
    const char *value = getenv(GRAPHS_SWITCH);
    if (value && strcmp(value, "0") && strcmp(value, "1"))
        refuse("%s is `%s`; it may be unset, 0 or 1", GRAPHS_SWITCH, value);
    return value && *value == '1';
}

static double number(const char *option, const char *word, double lowest, double highest, bool whole) {
    char *end;
    const double value = strtod(word, &end);
    if (!*word || *end || !(value >= lowest && value <= highest) || (whole && value != floor(value)))
        refuse("%s is `%s`, not a %snumber from %g to %g", option, word, whole ? "whole " : "", lowest, highest);
    return value;
}

static bool read_flag(struct options *options, const char *option) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--once", &options->once},
                 {"--parity", &options->parity},
                 {"--statistics", &options->statistics},
                 {"--logits", &options->logits},
                 {"--ignore-end", &options->ignore_end}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!strcmp(option, flags[i].name)) return *flags[i].flag = true;
    return false;
}

static void read_value(struct options *options, const char *option, const char *word) {
    if (!strcmp(option, "--model")) {
        options->model = word;
    } else if (!strcmp(option, "--encode")) {
        options->encode = word;
    } else if (!strcmp(option, "--device")) {
        if (strcmp(word, "cpu") && strcmp(word, "cuda")) refuse("--device is `%s`; it may be cuda or cpu", word);
        options->device = word;
    } else if (!strcmp(option, "--prompt")) {
        if (options->prompt_count == MOST_PROMPTS) refuse("--prompt may be given %d times", MOST_PROMPTS);
        options->prompts[options->prompt_count++] = word;
    } else if (!strcmp(option, "--tokens")) {
        options->tokens = (int)number(option, word, 1, 1e6, true);
    } else if (!strcmp(option, "--seed")) {
        options->seed = (uint64_t)number(option, word, 0, 9007199254740992.0, true);
    } else if (!strcmp(option, "--temperature")) {
        options->temperature = number(option, word, 0, 100, false);
    } else if (!strcmp(option, "--window")) {
        options->window = (int)number(option, word, 1, LARGEST_WINDOW, true);
    } else if (!strcmp(option, "--held")) {
        options->held = (int)number(option, word, 1, MOST_HELD, true);
    } else if (!strcmp(option, "--buffers")) {
        options->buffers = (int)number(option, word, 1, MOST_BUFFERS, true);
    } else if (!strcmp(option, "--dedicated")) {
        options->dedicated = (int)number(option, word, 0, MOST_HELD, true);
    } else if (!strcmp(option, "--rounds")) {
        options->rounds = (int)number(option, word, 1, MOST_ROUNDS, true);
    } else if (!strcmp(option, "--floor")) {
        options->floor = (uint64_t)number(option, word, 0, 1e9, true) << 20;
    } else if (!strcmp(option, "--port")) {
        options->port = (int)number(option, word, 0, 65535, true);
    } else {
        refuse("there is no option `%s`; --help lists them", option);
    }
}

struct options options_read(int count, char **words) {
    struct options options = {.graphs = read_switch(),
                              .device = "cuda",
                              .tokens = 16,
                              .window = LARGEST_WINDOW,
                              .held = MOST_HELD,
                              .buffers = 1,
                              .rounds = 1,
                              .port = 8000};
    for (int at = 1; at < count; at++) {
        if (!strcmp(words[at], "--help")) {
            fputs(help, stdout);
            exit(EXIT_SUCCESS);
        }
        if (read_flag(&options, words[at])) continue;
        if (at + 1 == count) refuse("`%s` is no option, or its value is missing; --help lists them", words[at]);
        read_value(&options, words[at], words[at + 1]);
        at++;
    }
    if (!options.model) refuse("--model names the folder of model.safetensors and merges.txt");
    if (options.graphs && strcmp(options.device, "cuda")) refuse("%s=1 needs --device cuda", GRAPHS_SWITCH);
    if (options.parity && !options.graphs) refuse("--parity needs %s=1", GRAPHS_SWITCH);
    if (options.parity && options.buffers == 1) options.buffers = 2;
    if (options.once && !options.prompt_count) refuse("--once needs a --prompt");
    return options;
}
