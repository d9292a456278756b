/* Gives a cache of graphs and a comparison what makes no sense, and says what they answer. */
#include <foundry_keyed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"rows"};
static unsigned passes;

static int record(void *user, void *stream) {
    (void)user;
    (void)stream;
    passes++;
    return 0;
}

static int begin(void *user, unsigned round, uint64_t *values) {
    (void)user;
    values[0] = round;
    return 0;
}

static foundry_keyed_options options_of(const char *set, unsigned shape, unsigned moving, unsigned most) {
    foundry_keyed_options options;
    memset(&options, 0, sizeof options);
    options.set = set;
    options.names = names;
    options.shape_count = shape;
    options.moving_count = moving;
    options.most = most;
    return options;
}

static void open_with(const char *what, const foundry_keyed_options *options) {
    foundry_keyed *cache = foundry_keyed_open(options);
    printf("%s: %s\n", what, cache ? "opened" : foundry_keyed_reason(NULL));
    foundry_keyed_close(cache);
}

static void compare_with(const char *what, const foundry_parity_options *options) {
    foundry_parity_report report;
    char line[512];
    const int verdict = foundry_parity_run(options, &report);
    foundry_parity_line(options ? options->cache : NULL, &report, line, sizeof line);
    printf("%s: %d %s\n", what, verdict, line);
}

int main(void) {
    foundry_keyed_options options = options_of(NULL, 1, 0, 0);
    foundry_parity_options parity;
    foundry_parity_span nothing = {"nothing", 0, 0};
    foundry_keyed *cache;
    char *longest = (char *)malloc(5000);
    int done = -1, result;
    if (!longest) return 1;
    memset(longest, 'x', 4999);
    longest[4999] = 0;
    open_with("no options", NULL);
    open_with("no set", &options);
    options = options_of(longest, 1, 0, 0);
    open_with("long set", &options);
    options = options_of("test", 1, 0, (unsigned)-1);
    open_with("no limit", &options);
    options = options_of("test", 0x80000000u, 0x80000000u, 0);
    open_with("names that add up to none", &options);
    options = options_of("test", 1, 0, 0);
    options.names = NULL;
    open_with("no names", &options);

    /* A key without values: all passes are one. */
    options = options_of("test", 0, 0, 0);
    cache = foundry_keyed_open(&options);
    if (!cache) return 2;
    result = foundry_keyed_run(cache, NULL, record, NULL, &done);
    printf("no values: %d, way %d, %u passes, %d eager\n", result, done, passes, (int)foundry_keyed_count(cache).eager);
    foundry_keyed_close(cache);

    memset(&parity, 0, sizeof parity);
    compare_with("no parity options", NULL);
    compare_with("no cache", &parity);
    options = options_of("test", 1, 0, 0);
    parity.cache = foundry_keyed_open(&options);
    if (!parity.cache) return 3;
    parity.record = record;
    parity.begin = begin;
    parity.state = &nothing;
    parity.state_count = 1;
    compare_with("no rounds", &parity);
    parity.rounds = 1;
    parity.constant = &names[0];
    parity.constant_count = 1;
    parity.controls = (const char *const *)&longest;
    parity.control_count = 1;
    compare_with("a control that is not in the key", &parity);
    foundry_keyed_close(parity.cache);
    foundry_keyed_close(NULL);
    foundry_keyed_empty(NULL);
    printf("of no cache: %d held\n", (int)foundry_keyed_count(NULL).held);
    free(longest);
    return 0;
}
