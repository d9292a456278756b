#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "foundry_keyed.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../capi/foundry.h"
#include "keyed_cache.h"

#define OUT_OF_MEMORY 2
#define CAPTURE_OF_THIS_THREAD 1
#define MOST_HELD 64
#define MOST_POSSIBLE 65536 /* their slots are made when a cache is opened */
#define MOST_NAMES (KEYED_LONGEST / KEYED_VALUE)
#define CHECK_EVERY 64 /* passes between two looks at the free memory, besides the look before each recording */
#define EAGERLY (-1)   /* the pass must run eagerly; also what foundry_keyed_warm answers then */

static char open_reason[KEYED_REASON];

static void tell(foundry_keyed *cache, const char *form, ...) {
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(cache->reason, sizeof cache->reason, form, arguments);
    va_end(arguments);
}

static int failed(foundry_keyed *cache, const char *function, int result) {
    keyed_tell(&cache->calls, function, result, cache->reason, sizeof cache->reason);
    return result;
}

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

static const char *fault_of(const foundry_keyed_options *options) {
    unsigned i, other;
    unsigned count;
    size_t length = 0;
    if (!options->set || !*options->set) return "the set has no name";
    if (strlen(options->set) >= KEYED_LONGEST) return "the set's name is too long";
    if (options->most > MOST_POSSIBLE) return "more than 65536 graphs cannot be held";
    if (options->shape_count > MOST_NAMES || options->moving_count > MOST_NAMES) return "the names are too long";
    count = options->shape_count + options->moving_count;
    if (count && !options->names) return "there are no names";
    for (i = 0; i < count; i++) {
        if (!options->names[i] || !*options->names[i]) return "a value has no name";
        for (other = 0; other < i; other++)
            if (!strcmp(options->names[i], options->names[other])) return "a name stands twice";
        length += strlen(options->names[i]) + KEYED_VALUE;
    }
    return length < KEYED_LONGEST ? NULL : "the names are too long";
}

static int copy_options(foundry_keyed *cache, const foundry_keyed_options *options, int without) {
    foundry_keyed_options *own = &cache->options;
    const unsigned count = options->shape_count + options->moving_count;
    char **names = (char **)calloc(count + 1, sizeof *names);
    unsigned i, at = 0;
    *own = *options;
    own->names = (const char *const *)names;
    own->most = options->most ? options->most : MOST_HELD;
    own->set = strdup(options->set);
    own->inputs = options->inputs ? strdup(options->inputs) : NULL;
    if (!names || !own->set || (options->inputs && !own->inputs)) return 0;
    for (i = 0; i < count; i++) {
        if ((int)i == without) continue;
        names[at] = strdup(options->names[i]);
        if (!names[at++]) return 0;
    }
    if (without >= 0) --*((unsigned)without < options->shape_count ? &own->shape_count : &own->moving_count);
    return 1;
}

static foundry_keyed *make(const foundry_keyed_options *options, int without, const char **fault) {
    foundry_keyed *cache;
    unsigned i;
    *fault = options ? fault_of(options) : "there are no options";
    if (*fault) return NULL;
    *fault = "there is no memory";
    cache = (foundry_keyed *)calloc(1, sizeof *cache);
    if (!cache) return NULL;
    cache->archive.options = &cache->options;
    cache->archive.reason = cache->reason;
    if (copy_options(cache, options, without)) {
        const unsigned most = cache->options.most;
        cache->slots = (struct keyed_slot *)calloc(most, sizeof *cache->slots);
        cache->ran = (struct keyed_ran *)calloc(2 * (size_t)most, sizeof *cache->ran);
        cache->ran_most = 2 * most;
        for (i = 0; cache->slots && i < most; i++)
            if (!(cache->slots[i].values = (uint64_t *)calloc(keyed_values(cache) + 1, sizeof(uint64_t)))) break;
        if (cache->slots && cache->ran && i == most) {
            for (i = 0; i < cache->ran_most; i++)
                if (!(cache->ran[i].values = (uint64_t *)calloc(options->shape_count + 1, sizeof(uint64_t)))) break;
            if (i == cache->ran_most) *fault = keyed_calls_open(&cache->calls);
        }
    }
    if (!*fault) return cache;
    foundry_keyed_close(cache);
    return NULL;
}

foundry_keyed *foundry_keyed_open(const foundry_keyed_options *options) {
    const char *fault;
    foundry_keyed *cache = make(options, -1, &fault);
    if (cache) keyed_archive_open(&cache->archive);
    snprintf(open_reason, sizeof open_reason, "%s", fault ? fault : "");
    return cache;
}

foundry_keyed *keyed_twin(const foundry_keyed *cache, int without) {
    const char *fault;
    return make(&cache->options, without, &fault);
}

void foundry_keyed_close(foundry_keyed *cache) {
    unsigned i;
    if (!cache) return;
    foundry_keyed_empty(cache);
    keyed_archive_close(&cache->archive);
    for (i = 0; cache->slots && i < cache->options.most; i++) free(cache->slots[i].values);
    for (i = 0; cache->ran && i < cache->ran_most; i++) free(cache->ran[i].values);
    for (i = 0; cache->options.names && i < keyed_values(cache); i++) free((char *)cache->options.names[i]);
    free((void *)cache->options.names);
    free((char *)cache->options.set);
    free((char *)cache->options.inputs);
    free(cache->slots);
    free(cache->ran);
    free(cache);
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static void empty_itself(foundry_keyed *cache) {
    if (!cache->slot_count) return;
    foundry_keyed_empty(cache);
    cache->counts.emptied++;
}

static int below_floor(const foundry_keyed *cache) {
    size_t free_bytes = 0, total = 0;
    return !cache->calls.cuMemGetInfo_v2(&free_bytes, &total) && free_bytes < cache->options.floor;
}

/* Empties the cache if memory is short, and tells whether it is still. */
static int short_of_memory(foundry_keyed *cache) {
    if (!cache->options.floor || !below_floor(cache)) return 0;
    tell(cache, "less than %" PRIu64 " bytes of device memory are free", cache->options.floor);
    empty_itself(cache);
    return below_floor(cache);
}

/* --- Recording ---------------------------------------------------------------------------------------------------- */

/* The key's name in the archive. */
static const char *name_key(foundry_keyed *cache, const uint64_t *values) {
    const unsigned count = cache->options.dedicated ? keyed_values(cache) : cache->options.shape_count;
    char value[KEYED_VALUE];
    int at = 0;
    unsigned i;
    snprintf(cache->key, sizeof cache->key, "all");
    for (i = 0; i < count; i++) {
        keyed_archive_write(value, sizeof value, values[i]);
        at += snprintf(cache->key + at, sizeof cache->key - (size_t)at, "%s%s=%s", i ? " " : "",
                       cache->options.names[i], value);
    }
    return cache->key;
}

static struct keyed_slot *restored_slot(foundry_keyed *cache, const uint64_t *values) {
    keyed_archived *found;
    struct keyed_slot *slot;
    const unsigned shape = cache->options.shape_count;
    if (keyed_archive_mode(&cache->archive) != FOUNDRY_RESTORE) return NULL;
    found = keyed_archive_find(&cache->archive, name_key(cache, values));
    if (!found || (cache->options.dedicated && !found->known)) return NULL;
    slot = keyed_make_slot(cache, values);
    memcpy(slot->values + shape, found->moving, keyed_bytes(cache->options.moving_count));
    slot->exec = found->exec;
    slot->known = found->known;
    slot->owned = 0;
    slot->kept = keyed_archive_stores();
    cache->counts.restored++;
    return slot;
}

/* The exec of the archive, if this is it, is now for those values, or for nobody knows what. */
static void note_change(foundry_keyed *cache, const struct keyed_slot *slot) {
    keyed_archived *found;
    if (slot->owned) return;
    found = keyed_archive_known(&cache->archive, name_key(cache, slot->values));
    if (!found) return;
    found->known = slot->known;
    memcpy(found->moving, slot->values + cache->options.shape_count, keyed_bytes(cache->options.moving_count));
}

/* NULL if the pass cannot be recorded. */
static void *record_pass(foundry_keyed *cache, foundry_keyed_record record, void *user) {
    void *graph = NULL;
    void *stream = cache->options.stream;
    int result = cache->calls.cuStreamBeginCapture_v2(stream, CAPTURE_OF_THIS_THREAD), ended;
    if (result) {
        failed(cache, "cuStreamBeginCapture_v2", result);
        return NULL;
    }
    result = record(user, stream);
    ended = cache->calls.cuStreamEndCapture(stream, &graph);
    if (!result && !ended && graph) return graph;
    if (ended)
        failed(cache, "cuStreamEndCapture", ended);
    else
        failed(cache, "the recording of a pass", result);
    if (graph) cache->calls.cuGraphDestroy(graph);
    return NULL;
}

static int update(foundry_keyed *cache, struct keyed_slot *slot, const uint64_t *values, void *graph) {
    keyed_update_result found;
    int result;
    memset(&found, 0, sizeof found);
    result = cache->calls.cuGraphExecUpdate_v2(slot->exec, graph, &found);
    slot->known = !result;
    if (!result) keyed_copy(slot->values, values, keyed_values(cache));
    note_change(cache, slot); /* whether a refused exec is whole is the driver's secret */
    if (!result) {
        slot->used = ++cache->clock;
        return 1;
    }
    failed(cache, "cuGraphExecUpdate_v2", result);
    keyed_clear_error(&cache->calls);
    cache->counts.refused++;
    return 0;
}

static int instantiate(foundry_keyed *cache, const uint64_t *values, void *graph, struct keyed_slot **made) {
    const char *key = name_key(cache, values);
    void *exec = NULL;
    int again, result = 0, kept = 0;
    for (again = 1; again >= 0; again--) {
        kept = keyed_archive_begin(&cache->archive, key);
        result = cache->calls.cuGraphInstantiateWithFlags(&exec, graph, 0);
        keyed_archive_end(&cache->archive, key, kept, values + cache->options.shape_count, !result);
        if (!result) break;
        failed(cache, "cuGraphInstantiateWithFlags", result);
        keyed_clear_error(&cache->calls);
        if (result != OUT_OF_MEMORY) return result;
        if (again) empty_itself(cache);
    }
    if (result) return EAGERLY;
    *made = keyed_make_slot(cache, values);
    (*made)->exec = exec;
    (*made)->known = (*made)->owned = 1;
    (*made)->kept = kept;
    return 0;
}

/* Records the pass, and holds an exec of it: the one there is, updated, or another. 0, EAGERLY, or an error. */
static int renew(foundry_keyed *cache, const uint64_t *values, foundry_keyed_record record, void *user,
                 struct keyed_slot **made, int *done) {
    void *graph;
    struct keyed_slot *slot;
    int result;
    if (short_of_memory(cache)) return EAGERLY;
    graph = record_pass(cache, record, user);
    if (!graph) {
        keyed_clear_error(&cache->calls);
        keyed_note_ran(cache, values)->unfit = 1;
        return EAGERLY;
    }
    slot = keyed_find_slot(cache, values);
    if (slot && !slot->kept && update(cache, slot, values, graph)) {
        *made = slot;
        *done = FOUNDRY_KEYED_UPDATED;
        cache->counts.updated++;
        result = 0;
    } else {
        result = instantiate(cache, values, graph, made);
        *done = FOUNDRY_KEYED_CAPTURED;
        cache->counts.captured += !result;
    }
    cache->calls.cuGraphDestroy(graph);
    return result;
}

/* --- Passes ------------------------------------------------------------------------------------------------------- */

static int run_eagerly(foundry_keyed *cache, const uint64_t *values, foundry_keyed_record record, void *user) {
    const int result = record(user, cache->options.stream);
    if (result) return failed(cache, "an eager pass", result);
    keyed_note_ran(cache, values);
    cache->counts.eager++;
    return 0;
}

static int launch(foundry_keyed *cache, struct keyed_slot *slot) {
    const int result = cache->calls.cuGraphLaunch(slot->exec, cache->options.stream);
    slot->used = ++cache->clock;
    return result ? failed(cache, "cuGraphLaunch", result) : 0;
}

static int is_for(const foundry_keyed *cache, const struct keyed_slot *slot, const uint64_t *values) {
    return slot && slot->known && keyed_same_values(cache, slot->values, values);
}

int foundry_keyed_run(foundry_keyed *cache, const uint64_t *values, foundry_keyed_record record, void *user,
                      int *done) {
    struct keyed_slot *slot;
    const struct keyed_ran *ran;
    int result, ignored;
    if (!done) done = &ignored;
    if (++cache->passes % CHECK_EVERY == 0) short_of_memory(cache);
    slot = keyed_find_slot(cache, values);
    if (!slot) slot = restored_slot(cache, values);
    if (is_for(cache, slot, values)) {
        *done = FOUNDRY_KEYED_REPLAYED;
        result = launch(cache, slot);
        cache->counts.replayed += !result;
        return result;
    }
    ran = keyed_find_ran(cache, values);
    if (ran && !ran->unfit) {
        result = renew(cache, values, record, user, &slot, done);
        if (!result) return launch(cache, slot);
        if (result != EAGERLY) return result;
    }
    *done = FOUNDRY_KEYED_EAGER;
    return run_eagerly(cache, values, record, user);
}

int foundry_keyed_warm(foundry_keyed *cache, const uint64_t *values, foundry_keyed_record record, void *user) {
    const int hooked = foundry_mode() != FOUNDRY_OFF;
    const struct keyed_ran *ran;
    struct keyed_slot *slot;
    int result = 0, done;
    if (keyed_find_slot(cache, values) || restored_slot(cache, values)) return 0;
    ran = keyed_find_ran(cache, values);
    if (ran && ran->unfit) return EAGERLY;
    if (!ran) {
        if (hooked) foundry_scratch_begin(name_key(cache, values));
        result = run_eagerly(cache, values, record, user);
        if (!result) {
            result = cache->calls.cuStreamSynchronize(cache->options.stream);
            if (result) failed(cache, "cuStreamSynchronize", result);
        }
        if (hooked) {
            foundry_scratch_end();
            foundry_count("warm_ups_run", 1);
        }
    }
    return result ? result : renew(cache, values, record, user, &slot, &done);
}

foundry_keyed_counts foundry_keyed_count(const foundry_keyed *cache) {
    foundry_keyed_counts counts;
    memset(&counts, 0, sizeof counts);
    if (!cache) return counts;
    counts = cache->counts;
    counts.held = cache->slot_count;
    return counts;
}

const char *foundry_keyed_reason(const foundry_keyed *cache) {
    return cache ? cache->reason : open_reason;
}
