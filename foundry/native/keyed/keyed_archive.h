/* The archive's side of a cache: graphs that a restore gives, and graphs that a capture keeps. Internal. */
#ifndef FOUNDRY_KEYED_ARCHIVE_H
#define FOUNDRY_KEYED_ARCHIVE_H

#include "foundry_keyed.h"

/* What is known of a key of the archive. The hook's execs live as long as the process, so what one was last updated to
 * stays known when a cache drops it, and when it is closed. */
typedef struct keyed_archived {
    char *key;
    void *exec;       /* of a restore; NULL if it gives none */
    int known;        /* the moving values are those of the exec */
    int kept;         /* the archive that is made has a graph of that key from here */
    uint64_t *moving; /* room for the cache's */
    struct keyed_archived *next;
} keyed_archived;

typedef struct keyed_set keyed_set;

typedef struct keyed_archive {
    const foundry_keyed_options *options;
    keyed_set *set; /* what this process knows of the set; NULL: there is no archive, or another cache has it */
    int in_scratch; /* between keyed_archive_begin and _end */
    char *reason;   /* FOUNDRY_KEYED_REASON bytes of the cache's */
} keyed_archive;

#define KEYED_REASON 256
#define KEYED_VALUE 32 /* bytes of a value as text */

/* A value as text. An address in a range of the hook's, which a restore may have elsewhere, is told relative to it. */
void keyed_archive_write(char *text, size_t size, uint64_t value);
/* One open cache has a set. Without this call a cache asks no archive. */
void keyed_archive_open(keyed_archive *archive);
void keyed_archive_close(keyed_archive *archive);
int keyed_archive_mode(const keyed_archive *archive);
/* Whether graphs of this process go into an archive: in a capture, and in a restore that is an update. What an exec
 * there was made from must stay as it is. */
int keyed_archive_stores(void);
/* The archive's graph of that key, or NULL. */
keyed_archived *keyed_archive_find(keyed_archive *archive, const char *key);
/* NULL if it is not known. */
keyed_archived *keyed_archive_known(keyed_archive *archive, const char *key);

/* Around an instantiation. The first of a key goes to the archive that is captured: then true, and the exec must stay
 * as it is. Another is made in a scratch phase, and is not kept. */
int keyed_archive_begin(keyed_archive *archive, const char *key);
void keyed_archive_end(keyed_archive *archive, const char *key, int kept, const uint64_t *moving, int made);

#endif
