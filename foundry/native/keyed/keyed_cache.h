/* A cache of graphs by key from inside: its slots, and the shapes that ran. Internal. */
#ifndef FOUNDRY_KEYED_CACHE_H
#define FOUNDRY_KEYED_CACHE_H

#include "keyed_archive.h"
#include "keyed_calls.h"

#define KEYED_LONGEST 4096 /* bytes of a key as text */

/* A held exec. */
struct keyed_slot {
    uint64_t *values; /* shape, then the moving values of the exec */
    void *exec;
    int known; /* the moving values are those of the exec */
    int owned; /* the cache made it, and destroys it */
    int kept;  /* a capture stores what it was made from, so it must not be updated */
    uint64_t used;
};

/* A shape that ran eagerly since it last had an exec. */
struct keyed_ran {
    uint64_t *values;
    int unfit; /* it cannot be recorded */
    uint64_t used;
};

struct foundry_keyed {
    keyed_calls calls;
    foundry_keyed_options options;
    keyed_archive archive;
    struct keyed_slot *slots;
    struct keyed_ran *ran;
    unsigned slot_count, ran_count, ran_most;
    uint64_t clock, passes;
    foundry_keyed_counts counts;
    char reason[KEYED_REASON], key[KEYED_LONGEST];
};

size_t keyed_bytes(unsigned values);
unsigned keyed_values(const foundry_keyed *cache);
/* A key without values may be NULL. */
void keyed_copy(uint64_t *to, const uint64_t *from, unsigned count);
int keyed_same_shape(const foundry_keyed *cache, const uint64_t *one, const uint64_t *other);
int keyed_same_values(const foundry_keyed *cache, const uint64_t *one, const uint64_t *other);

/* NULL if there is none. With execs that are updated any slot of the shape is one. */
struct keyed_slot *keyed_find_slot(foundry_keyed *cache, const uint64_t *values);
/* The slot for these values: the one there is, without its exec, or another, for which the oldest may make room. */
struct keyed_slot *keyed_make_slot(foundry_keyed *cache, const uint64_t *values);
void keyed_drop(foundry_keyed *cache, struct keyed_slot *slot);

struct keyed_ran *keyed_find_ran(foundry_keyed *cache, const uint64_t *values);
struct keyed_ran *keyed_note_ran(foundry_keyed *cache, const uint64_t *values);

/* An empty cache like this one that asks no archive. Its key leaves out the value at `without`, if that is not -1. */
foundry_keyed *keyed_twin(const foundry_keyed *cache, int without);

#endif
