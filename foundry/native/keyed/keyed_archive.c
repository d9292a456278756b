#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "keyed_archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../capi/foundry.h"

#define FORMAT "keyed 1"
#define MOST_DEVICES 16
#define MOST_UNKNOWN 256 /* keys that the archive is asked for in vain; then it is asked for no others */
#define LARGEST_RANGE ((uint64_t)1 << 42)

static const char *inputs_of(const keyed_archive *archive) {
    return archive->options->inputs ? archive->options->inputs : "";
}

static void count(const keyed_archive *archive, const char *name) {
    if (!archive->absent) foundry_count(name, 1);
}

void keyed_archive_close(keyed_archive *archive) {
    while (archive->first) {
        keyed_archived *gone = archive->first;
        archive->first = gone->next;
        free(gone->key);
        free(gone->moving);
        free(gone);
    }
}

int keyed_archive_mode(const keyed_archive *archive) {
    return archive->absent ? FOUNDRY_OFF : foundry_mode();
}

keyed_archived *keyed_archive_known(keyed_archive *archive, const char *key) {
    keyed_archived *one;
    for (one = archive->first; one; one = one->next)
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
    made->next = archive->first;
    return archive->first = made;
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

/* Reads "keyed 1 MOVING... :INPUTS". False if it was captured for something else. */
static int read_metadata(const keyed_archive *archive, const char *text, keyed_archived *found) {
    const unsigned moving = archive->options->moving_count;
    const char *rest = text;
    unsigned i;
    if (!text || strncmp(text, FORMAT, sizeof FORMAT - 1)) return 0;
    rest = text + sizeof FORMAT - 1;
    for (i = 0; i < moving && rest; i++) rest = *rest == ' ' ? read_value(rest + 1, &found->moving[i]) : NULL;
    found->known = 1;
    return rest && !strncmp(rest, " :", 2) && !strcmp(rest + 2, inputs_of(archive));
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
        if (archive->unknown == MOST_UNKNOWN) return NULL;
        found = add(archive, key);
        if (!found) return NULL;
        found->exec = take(archive, key, found);
        archive->unknown += !found->exec;
        if (found->exec) {
            count(archive, "warm_ups_skipped");
            count(archive, "captures_skipped");
        }
    }
    return found->exec ? found : NULL;
}

int keyed_archive_begin(keyed_archive *archive, const char *key) {
    const foundry_keyed_options *options = archive->options;
    archive->in_scratch = 0;
    if (keyed_archive_mode(archive) != FOUNDRY_CAPTURE) return 0;
    /* Dedicated execs may be for values that never come back. */
    if (keyed_archive_known(archive, key) || (options->dedicated && archive->kept >= options->most)) {
        archive->in_scratch = !foundry_scratch_begin(key);
        return 0;
    }
    return !foundry_graph_begin(options->set, key);
}

static void write_metadata(const keyed_archive *archive, const uint64_t *moving) {
    const char *inputs = inputs_of(archive);
    char *text =
        (char *)malloc(sizeof FORMAT + strlen(inputs) + 3 + KEYED_VALUE * (size_t)archive->options->moving_count);
    unsigned i;
    if (text) {
        char *at = text + sprintf(text, FORMAT);
        for (i = 0; i < archive->options->moving_count; i++) {
            *at++ = ' ';
            keyed_archive_write(at, KEYED_VALUE - 1, moving[i]);
            at += strlen(at);
        }
        sprintf(at, " :%s", inputs);
    }
    foundry_graph_end(text);
    free(text);
}

void keyed_archive_end(keyed_archive *archive, const char *key, int kept, const uint64_t *moving, int made) {
    if (archive->in_scratch) foundry_scratch_end();
    if (kept && made) {
        write_metadata(archive, moving);
        add(archive, key);
        archive->kept++;
    } else if (kept) {
        foundry_graph_end(NULL);
    }
    if (made) count(archive, "captures_run");
}
