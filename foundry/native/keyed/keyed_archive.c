#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "keyed_archive.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../capi/foundry.h"

#define FORMAT "keyed 2"
#define MOST_DEVICES 16
#define MOST_UNKNOWN 256 /* keys that the archive is asked for in vain; then it is asked for no others */
#define LARGEST_RANGE ((uint64_t)1 << 42)

/* A set of the archive in this process, for good: execs that a closed cache had are not what they were. */
struct keyed_set {
    char *name, *names, *inputs; /* of the cache that has it, or had it last */
    int taken;
    unsigned unknown, kept;
    keyed_archived *first;
    keyed_set *next;
};

static keyed_set *sets;
static pthread_mutex_t sets_mutex = PTHREAD_MUTEX_INITIALIZER;

static const char *inputs_of(const keyed_archive *archive) {
    return archive->options->inputs ? archive->options->inputs : "";
}

static void count(const char *name) {
    foundry_count(name, 1);
}

/* The names of the moving values, each behind its length. NULL if there is no memory. */
static char *join_names(const foundry_keyed_options *options) {
    size_t length = 1;
    unsigned i;
    char *joined;
    int at = 0;
    for (i = 0; i < options->moving_count; i++) length += strlen(options->names[options->shape_count + i]) + 24;
    joined = (char *)calloc(1, length);
    for (i = 0; joined && i < options->moving_count; i++) {
        const char *name = options->names[options->shape_count + i];
        at += sprintf(joined + at, " %lu:%s", (unsigned long)strlen(name), name);
    }
    return joined;
}

static keyed_set *find_set(const char *name) {
    keyed_set *set;
    for (set = sets; set; set = set->next)
        if (!strcmp(set->name, name)) return set;
    set = (keyed_set *)calloc(1, sizeof *set);
    if (!set) return NULL;
    set->name = strdup(name);
    if (!set->name) {
        free(set);
        return NULL;
    }
    set->next = sets;
    return sets = set;
}

/* For a cache whose moving values are others nobody knows what execs are for; with other inputs they are not for it. */
static int take_over(keyed_set *set, const keyed_archive *archive) {
    char *names = join_names(archive->options), *inputs = strdup(inputs_of(archive));
    const unsigned moving = archive->options->moving_count;
    keyed_archived *one;
    const int same_names = names && set->names && !strcmp(set->names, names);
    const int same_inputs = inputs && set->inputs && !strcmp(set->inputs, inputs);
    int whole = names && inputs;
    for (one = set->first; one && whole; one = one->next) {
        uint64_t *room = same_names ? one->moving : (uint64_t *)calloc(moving + 1, sizeof *room);
        if (!same_inputs) one->exec = NULL;
        if (!same_names) {
            one->known = 0;
            if (!room) {
                whole = 0;
                break;
            }
            free(one->moving);
            one->moving = room;
        }
    }
    free(set->names);
    free(set->inputs);
    set->names = whole ? names : NULL;
    set->inputs = whole ? inputs : NULL;
    if (whole) return 1;
    free(names);
    free(inputs);
    return 0;
}

void keyed_archive_open(keyed_archive *archive) {
    keyed_set *set;
    pthread_mutex_lock(&sets_mutex);
    set = find_set(archive->options->set);
    if (set && !set->taken && take_over(set, archive)) {
        set->taken = 1;
        archive->set = set;
    } else {
        snprintf(archive->reason, KEYED_REASON, "another cache has the graphs of %.100s", archive->options->set);
    }
    pthread_mutex_unlock(&sets_mutex);
}

void keyed_archive_close(keyed_archive *archive) {
    if (!archive->set) return;
    pthread_mutex_lock(&sets_mutex);
    archive->set->taken = 0;
    pthread_mutex_unlock(&sets_mutex);
    archive->set = NULL;
}

int keyed_archive_mode(const keyed_archive *archive) {
    return archive->set ? foundry_mode() : FOUNDRY_OFF;
}

int keyed_archive_stores(void) {
    const char *updating = getenv("FOUNDRY_UPDATE");
    const int mode = foundry_mode();
    return mode == FOUNDRY_CAPTURE || (mode == FOUNDRY_RESTORE && updating && !strcmp(updating, "1"));
}

keyed_archived *keyed_archive_known(keyed_archive *archive, const char *key) {
    keyed_archived *one;
    for (one = archive->set ? archive->set->first : NULL; one; one = one->next)
        if (!strcmp(one->key, key)) return one;
    return NULL;
}

static keyed_archived *add(keyed_archive *archive, const char *key) {
    keyed_archived *made = (keyed_archived *)calloc(1, sizeof *made);
    if (!made) return NULL;
    made->key = strdup(key);
    made->moving = (uint64_t *)calloc(archive->options->moving_count + 1, sizeof *made->moving);
    if (!made->key || !made->moving) {
        free(made->key);
        free(made->moving);
        free(made);
        return NULL;
    }
    made->next = archive->set->first;
    return archive->set->first = made;
}

void keyed_archive_write(char *text, size_t size, uint64_t value) {
    uint64_t best = 0;
    int device, found = -1;
    for (device = 0; device < MOST_DEVICES; device++) {
        const uint64_t base = foundry_range_base(device);
        if (base > best && base <= value && value - base < LARGEST_RANGE) {
            best = base;
            found = device;
        }
    }
    if (found < 0)
        snprintf(text, size, "%" PRIu64, value);
    else
        snprintf(text, size, "%d+%" PRIu64, found, value - best);
}

/* Reads what keyed_archive_write wrote, as the process has it. NULL, or what follows. */
static const char *read_value(const char *text, uint64_t *value) {
    char *end = NULL;
    *value = strtoull(text, &end, 10);
    if (end == text) return NULL;
    if (*end != '+') return end;
    text = end + 1;
    *value = foundry_range_base((int)*value);
    if (!*value) return NULL;
    *value += strtoull(text, &end, 10);
    return end == text ? NULL : end;
}

/* Reads "keyed 2 MOVING... NAMES :INPUTS". False if it was captured for something else. */
static int read_metadata(const keyed_archive *archive, const char *text, keyed_archived *found) {
    const unsigned moving = archive->options->moving_count;
    const size_t names = strlen(archive->set->names);
    const char *rest = text;
    unsigned i;
    if (!text || strncmp(text, FORMAT, sizeof FORMAT - 1)) return 0;
    rest = text + sizeof FORMAT - 1;
    for (i = 0; i < moving && rest; i++) rest = *rest == ' ' ? read_value(rest + 1, &found->moving[i]) : NULL;
    if (!rest || strncmp(rest, archive->set->names, names) || strncmp(rest + names, " :", 2)) return 0;
    found->known = 1;
    return !strcmp(rest + names + 2, inputs_of(archive));
}

static void *take(keyed_archive *archive, const char *key, keyed_archived *found) {
    foundry_graph *graph = foundry_graph_find(archive->options->set, key);
    if (graph && !read_metadata(archive, foundry_graph_metadata(graph), found)) {
        snprintf(archive->reason, KEYED_REASON, "%s: it was captured for other inputs", key);
        foundry_graph_give_up(graph, "it was captured for other inputs");
        return NULL;
    }
    if (graph && !foundry_graph_wait(graph)) return foundry_graph_exec(graph);
    snprintf(archive->reason, KEYED_REASON, "%s: %s", key, foundry_reason());
    return NULL;
}

keyed_archived *keyed_archive_find(keyed_archive *archive, const char *key) {
    keyed_archived *found;
    if (keyed_archive_mode(archive) != FOUNDRY_RESTORE) return NULL;
    found = keyed_archive_known(archive, key);
    if (!found) {
        if (archive->set->unknown == MOST_UNKNOWN) return NULL;
        found = add(archive, key);
        if (!found) return NULL;
        found->exec = take(archive, key, found);
        archive->set->unknown += !found->exec;
        if (found->exec) {
            count("warm_ups_skipped");
            count("captures_skipped");
        }
    }
    return found->exec ? found : NULL;
}

int keyed_archive_begin(keyed_archive *archive, const char *key) {
    const foundry_keyed_options *options = archive->options;
    const keyed_archived *known = keyed_archive_known(archive, key);
    archive->in_scratch = 0;
    if (!keyed_archive_stores()) return 0;
    /* Dedicated execs may be for values that never come back. */
    if (!archive->set || (known && (known->exec || known->kept)) ||
        (options->dedicated && archive->set->kept >= options->most)) {
        archive->in_scratch = !foundry_scratch_begin(key);
        return 0;
    }
    return !foundry_graph_begin(options->set, key);
}

static void write_metadata(const keyed_archive *archive, const uint64_t *moving) {
    const char *inputs = inputs_of(archive), *names = archive->set->names;
    char *text = (char *)malloc(sizeof FORMAT + strlen(names) + strlen(inputs) + 3 +
                                KEYED_VALUE * (size_t)archive->options->moving_count);
    unsigned i;
    if (text) {
        char *at = text + sprintf(text, FORMAT);
        for (i = 0; i < archive->options->moving_count; i++) {
            *at++ = ' ';
            keyed_archive_write(at, KEYED_VALUE - 1, moving[i]);
            at += strlen(at);
        }
        sprintf(at, "%s :%s", names, inputs);
    }
    foundry_graph_end(text);
    free(text);
}

void keyed_archive_end(keyed_archive *archive, const char *key, int kept, const uint64_t *moving, int made) {
    if (archive->in_scratch) foundry_scratch_end();
    if (kept && made) {
        keyed_archived *known = keyed_archive_known(archive, key);
        write_metadata(archive, moving);
        if (!known) known = add(archive, key);
        if (known) known->kept = 1;
        archive->set->kept++;
    } else if (kept) {
        foundry_graph_end(NULL);
    }
    if (made && archive->set) count("captures_run");
}
