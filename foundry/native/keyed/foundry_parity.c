#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../capi/foundry.h"
#include "keyed_cache.h"

#define VARIABLE "FOUNDRY_PARITY" /* names the file that reports are appended to */
#define NONE (-1)

/* Bytes of outputs, then of the state, on the host. */
struct memory {
    unsigned char *before, *graph, *eager, *first;
};

struct twins {
    const foundry_parity_options *options;
    foundry_parity_report *report;
    const foundry_keyed_options *key;
    const keyed_calls *calls;
    struct memory memory;
    uint64_t *values, *shortened; /* of a round; without the one that is left out */
    uint64_t output_bytes, bytes;
    char fault[sizeof((foundry_parity_report *)0)->reason]; /* why a comparison could not be made */
};

int foundry_parity_wanted(void) {
    const char *path = getenv(VARIABLE);
    return path && *path;
}

static int blame(struct twins *twins, const char *function, int result) {
    if (result) keyed_tell(twins->calls, function, result, twins->fault, sizeof twins->fault);
    return result;
}

static unsigned names_of(const struct twins *twins) {
    return twins->key->shape_count + twins->key->moving_count;
}

static int find_name(const struct twins *twins, const char *name) {
    unsigned i;
    for (i = 0; i < names_of(twins); i++)
        if (!strcmp(twins->key->names[i], name)) return (int)i;
    return NONE;
}

/* --- State -------------------------------------------------------------------------------------------------------- */

static int read_spans(struct twins *twins, const foundry_parity_span *spans, unsigned count, unsigned char *to) {
    unsigned i;
    int result = blame(twins, "cuCtxSynchronize", twins->calls->cuCtxSynchronize());
    for (i = 0; i < count && !result; to += spans[i++].bytes)
        result = blame(twins, "cuMemcpyDtoH_v2", twins->calls->cuMemcpyDtoH_v2(to, spans[i].address, spans[i].bytes));
    return result;
}

static int read_all(struct twins *twins, unsigned char *to) {
    const foundry_parity_options *options = twins->options;
    const int result = read_spans(twins, options->outputs, options->output_count, to);
    return result ? result : read_spans(twins, options->state, options->state_count, to + twins->output_bytes);
}

static int write_state(struct twins *twins, const unsigned char *all) {
    const foundry_parity_options *options = twins->options;
    const unsigned char *from = all + twins->output_bytes;
    unsigned i;
    int result = blame(twins, "cuCtxSynchronize", twins->calls->cuCtxSynchronize());
    for (i = 0; i < options->state_count && !result; from += options->state[i++].bytes)
        result = blame(twins, "cuMemcpyHtoD_v2",
                       twins->calls->cuMemcpyHtoD_v2(options->state[i].address, from, options->state[i].bytes));
    return result ? result : blame(twins, "cuCtxSynchronize", twins->calls->cuCtxSynchronize());
}

/* --- Rounds ------------------------------------------------------------------------------------------------------- */

static int begin(struct twins *twins, unsigned round) {
    return blame(twins, "the inputs of a round", twins->options->begin(twins->options->user, round, twins->values));
}

static int run_eagerly(struct twins *twins, unsigned round) {
    const foundry_parity_options *options = twins->options;
    int result = begin(twins, round);
    if (!result) result = blame(twins, "an eager pass", options->record(options->user, twins->key->stream));
    return result ? result : read_all(twins, twins->memory.eager);
}

static int run_keyed(struct twins *twins, foundry_keyed *cache, unsigned round, int without, int *done) {
    const foundry_parity_options *options = twins->options;
    unsigned i, at = 0;
    int result = begin(twins, round);
    if (result) return result;
    for (i = 0; i < names_of(twins); i++)
        if ((int)i != without) twins->shortened[at++] = twins->values[i];
    result = foundry_keyed_run(cache, twins->shortened, options->record, options->user, done);
    if (result) snprintf(twins->fault, sizeof twins->fault, "%.200s", foundry_keyed_reason(cache));
    return result ? result : read_all(twins, twins->memory.graph);
}

static void write_hex(char *text, const unsigned char *bytes, uint64_t count) {
    uint64_t i;
    *text = 0;
    for (i = 0; i < count && i < 8; i++) sprintf(text + 2 * i, "%02x", bytes[i]);
}

/* Names the first byte that differs. */
static void tell_difference(struct twins *twins, unsigned round, int done, uint64_t place) {
    static const char *const ways[] = {"eager", "captured", "updated", "replayed"};
    const foundry_parity_options *options = twins->options;
    const int output = place < twins->output_bytes;
    const foundry_parity_span *span = output ? options->outputs : options->state;
    const unsigned char *graph = twins->memory.graph + place, *eager = twins->memory.eager + place;
    uint64_t at = output ? place : place - twins->output_bytes;
    char one[17], other[17];
    while (at >= span->bytes) at -= span++->bytes;
    write_hex(one, graph, span->bytes - at);
    write_hex(other, eager, span->bytes - at);
    snprintf(twins->report->reason, sizeof twins->report->reason,
             "round %u (%s), %s %.80s at byte %" PRIu64 ": %s through the graph, %s eagerly", round + 1, ways[done],
             output ? "output" : "state", span->name, at, one, other);
}

/* Whether another eager pass from the same state gives the same. The bytes of the graph's are no longer needed. */
static int steady(struct twins *twins, unsigned round) {
    memcpy(twins->memory.graph, twins->memory.eager, twins->bytes);
    if (write_state(twins, twins->memory.before) || run_eagerly(twins, round)) return 1;
    return !memcmp(twins->memory.graph, twins->memory.eager, twins->bytes);
}

static int compare(struct twins *twins, unsigned round, int done, int without) {
    uint64_t place = 0;
    static const char more[] = ", and two eager passes differ, too";
    char *reason = twins->report->reason;
    if (!memcmp(twins->memory.graph, twins->memory.eager, twins->bytes)) return 0;
    if (without != NONE) return 1;
    while (twins->memory.graph[place] == twins->memory.eager[place]) place++;
    tell_difference(twins, round, done, place);
    if (!steady(twins, round) && strlen(reason) + sizeof more <= sizeof twins->report->reason) strcat(reason, more);
    return 1;
}

static void count_round(struct twins *twins, int done) {
    foundry_parity_report *report = twins->report;
    report->rounds++;
    report->bytes += twins->bytes;
    report->eager += done == FOUNDRY_KEYED_EAGER;
    report->captured += done == FOUNDRY_KEYED_CAPTURED;
    report->updated += done == FOUNDRY_KEYED_UPDATED;
    report->replayed += done == FOUNDRY_KEYED_REPLAYED;
}

/* Runs all rounds: 0 if all is equal, 1 at the first difference, or an error with `fault` set. Counts them, and tells
 * what differed, unless a value is left out. */
static int run_rounds(struct twins *twins, foundry_keyed *cache, int without) {
    const uint64_t state_bytes = twins->bytes - twins->output_bytes;
    unsigned round;
    int result = 0, different = 0, done = 0;
    memcpy(twins->memory.before, twins->memory.first, twins->bytes);
    for (round = 0; round < twins->options->rounds && !result && !different; round++) {
        result = run_keyed(twins, cache, round, without, &done);
        if (!result) result = write_state(twins, twins->memory.before);
        if (!result) result = run_eagerly(twins, round);
        if (result) break;
        if (without == NONE) count_round(twins, done);
        different = compare(twins, round, done, without);
        if (different) break;
        memcpy(twins->memory.before + twins->output_bytes, twins->memory.eager + twins->output_bytes, state_bytes);
    }
    if (write_state(twins, twins->memory.first)) return -1;
    return result ? -1 : different;
}

/* --- Verdict ------------------------------------------------------------------------------------------------------ */

static int listed(const char *const *names, unsigned count, const char *name) {
    unsigned i;
    for (i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return 1;
    return 0;
}

/* NULL, or the name of a value that the rounds leave constant and should not. */
static int cross_seams(struct twins *twins, const char **missing) {
    const foundry_parity_options *options = twins->options;
    const unsigned count = names_of(twins);
    uint64_t *first = (uint64_t *)calloc(count + 1, sizeof *first);
    char *crossed = (char *)calloc(count + 1, 1);
    unsigned round, i;
    int result = first && crossed ? 0 : -1;
    if (result) snprintf(twins->fault, sizeof twins->fault, "there is no memory");
    for (round = 0; round < options->rounds && !result; round++) {
        result = begin(twins, round);
        for (i = 0; i < count && !result; i++) {
            if (!round) first[i] = twins->values[i];
            if (first[i] != twins->values[i]) crossed[i] = 1;
        }
    }
    for (i = 0; i < count && !result; i++) {
        twins->report->seams += (uint64_t)crossed[i];
        if (!crossed[i] && !*missing && !listed(options->constant, options->constant_count, twins->key->names[i]))
            *missing = twins->key->names[i];
    }
    free(first);
    free(crossed);
    if (!result) result = write_state(twins, twins->memory.first);
    return result;
}

static int refuse(struct twins *twins, const char *form, ...) {
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(twins->report->reason, sizeof twins->report->reason, form, arguments);
    va_end(arguments);
    return FOUNDRY_PARITY_REFUSED;
}

static int plant(struct twins *twins, int without, const char **passed) {
    foundry_keyed *planted = keyed_twin(twins->options->cache, without);
    int different;
    if (!planted) return refuse(twins, "there is no memory for a control");
    different = run_rounds(twins, planted, without);
    foundry_keyed_close(planted);
    if (different < 0) return refuse(twins, "%s", twins->fault);
    twins->report->controls++;
    twins->report->caught += (uint64_t)different;
    if (!different && !*passed) *passed = twins->key->names[without];
    return FOUNDRY_PARITY_EQUAL;
}

static int plant_all(struct twins *twins) {
    const foundry_parity_options *options = twins->options;
    const unsigned shape = twins->key->shape_count, moving = twins->key->moving_count;
    const unsigned from = moving ? shape : 0, to = moving ? shape + moving : shape;
    const char *passed = NULL;
    unsigned i;
    int verdict = FOUNDRY_PARITY_EQUAL;
    if (options->controls)
        for (i = 0; i < options->control_count && !verdict; i++)
            verdict = plant(twins, find_name(twins, options->controls[i]), &passed);
    else
        for (i = from; i < to && !verdict; i++) verdict = plant(twins, (int)i, &passed);
    if (verdict) return verdict;
    if (!twins->report->controls) return refuse(twins, "no control was planted");
    if (!passed) return FOUNDRY_PARITY_EQUAL;
    return refuse(twins,
                  "the control passes: without %.60s in the key all is equal, too; does a round change %.60s alone?",
                  passed, passed);
}

static void add_word(char *text, const char *word) {
    if (*text) strcat(text, " or ");
    strcat(text, word);
}

static int judge(struct twins *twins) {
    foundry_parity_report *report = twins->report;
    const char *missing = NULL;
    int different;
    const int updates = twins->key->moving_count && !twins->key->dedicated;
    char absent[64] = "";
    if (cross_seams(twins, &missing)) return refuse(twins, "%s", twins->fault);
    if (missing) return refuse(twins, "no round crosses a seam of %s", missing);
    different = run_rounds(twins, twins->options->cache, NONE);
    if (!different && !report->captured) {
        foundry_keyed *again = keyed_twin(twins->options->cache, NONE);
        if (!again) return refuse(twins, "there is no memory for a twin");
        different = run_rounds(twins, again, NONE);
        foundry_keyed_close(again);
    }
    if (different < 0) return refuse(twins, "%s", twins->fault);
    if (different) return FOUNDRY_PARITY_DIFFERENT;
    if (!report->replayed) add_word(absent, "replayed");
    if (!report->updated && updates) add_word(absent, "updated");
    if (!report->captured) add_word(absent, "captured");
    if (*absent) return refuse(twins, "no round was %s", absent);
    return plant_all(twins);
}

/* --- Report ------------------------------------------------------------------------------------------------------- */

static const char *const verdicts[] = {"equal", "different", "misuse", "refused"};

static const char *name_of(const foundry_keyed *cache) {
    return cache ? cache->options.set : "no cache";
}

int foundry_parity_line(const foundry_keyed *cache, const foundry_parity_report *report, char *line, size_t size) {
    return snprintf(line, size,
                    "parity of %s: %s: %s%s%" PRIu64 " rounds (%" PRIu64 " replayed, %" PRIu64 " updated, %" PRIu64
                    " captured, %" PRIu64 " eager), %" PRIu64 " seams crossed, %" PRIu64 " bytes compared, %" PRIu64
                    " of %" PRIu64 " controls caught",
                    name_of(cache), verdicts[report->verdict & 3], report->reason, *report->reason ? "; " : "",
                    report->rounds, report->replayed, report->updated, report->captured, report->eager, report->seams,
                    report->bytes, report->caught, report->controls);
}

static void write_text(FILE *file, const char *text) {
    putc('"', file);
    for (; *text; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte < 32 || byte == '"' || byte == '\\')
            fprintf(file, "\\u%04x", byte);
        else
            putc(byte, file);
    }
    putc('"', file);
}

/* One line of JSON, which `foundry parity` reads. */
static void append_report(const foundry_keyed *cache, const foundry_parity_report *report) {
    FILE *file = fopen(getenv(VARIABLE), "ae");
    if (!file) return;
    fputs("{\"name\": ", file);
    write_text(file, name_of(cache));
    fprintf(file,
            ", \"verdict\": \"%s\", \"rounds\": %" PRIu64 ", \"eager\": %" PRIu64 ", \"captured\": %" PRIu64
            ", \"updated\": %" PRIu64 ", \"replayed\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"seams\": %" PRIu64
            ", \"controls\": %" PRIu64 ", \"caught\": %" PRIu64 ", \"reason\": ",
            verdicts[report->verdict == FOUNDRY_PARITY_MISUSE ? FOUNDRY_PARITY_REFUSED : report->verdict],
            report->rounds, report->eager, report->captured, report->updated, report->replayed, report->bytes,
            report->seams, report->controls, report->caught);
    write_text(file, report->reason);
    fputs("}\n", file);
    fclose(file);
}

static int fits(const struct twins *twins) {
    const foundry_parity_options *options = twins->options;
    unsigned i;
    if (!options->state_count || !options->state || (options->output_count && !options->outputs)) return 0;
    if (!options->begin || !options->record || !options->rounds) return 0;
    for (i = 0; options->controls && i < options->control_count; i++)
        if (find_name(twins, options->controls[i]) == NONE) return 0;
    for (i = 0; i < options->constant_count; i++)
        if (find_name(twins, options->constant[i]) == NONE) return 0;
    return 1;
}

static unsigned char *take(const struct twins *twins) {
    return (unsigned char *)malloc(twins->bytes + 1);
}

static int prepare(struct twins *twins) {
    const foundry_parity_options *options = twins->options;
    struct memory *memory = &twins->memory;
    unsigned i;
    for (i = 0; i < options->output_count; i++) twins->output_bytes += options->outputs[i].bytes;
    twins->bytes = twins->output_bytes;
    for (i = 0; i < options->state_count; i++) twins->bytes += options->state[i].bytes;
    memory->before = take(twins);
    memory->graph = take(twins);
    memory->eager = take(twins);
    memory->first = take(twins);
    twins->values = (uint64_t *)calloc(names_of(twins) + 1, sizeof *twins->values);
    twins->shortened = (uint64_t *)calloc(names_of(twins) + 1, sizeof *twins->shortened);
    if (memory->before && memory->graph && memory->eager && memory->first && twins->values && twins->shortened)
        return read_all(twins, memory->first);
    snprintf(twins->fault, sizeof twins->fault, "there is no memory for the state");
    return -1;
}

static int compare_twins(struct twins *twins) {
    const foundry_parity_options *options = twins->options;
    int storing, verdict;
    if (!options || !options->cache || !fits(twins)) {
        refuse(twins, "it needs a cache, state, rounds, both functions, and names that the key has");
        return FOUNDRY_PARITY_MISUSE;
    }
    twins->calls = &options->cache->calls;
    storing = keyed_archive_stores(); /* then none of it is kept */
    if (storing) foundry_scratch_begin("parity");
    verdict = prepare(twins) ? refuse(twins, "%s", twins->fault) : judge(twins);
    if (storing) foundry_scratch_end();
    return verdict;
}

int foundry_parity_run(const foundry_parity_options *options, foundry_parity_report *report) {
    struct twins twins;
    foundry_keyed *cache = options ? options->cache : NULL;
    memset(report, 0, sizeof *report);
    memset(&twins, 0, sizeof twins);
    twins.options = options;
    twins.report = report;
    if (cache) twins.key = &cache->options;
    report->verdict = compare_twins(&twins);
    free(twins.memory.before);
    free(twins.memory.graph);
    free(twins.memory.eager);
    free(twins.memory.first);
    free(twins.values);
    free(twins.shortened);
    if (foundry_parity_wanted()) append_report(cache, report);
    return report->verdict;
}
