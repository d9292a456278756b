#include <string.h>

#include "keyed_cache.h"

size_t keyed_bytes(unsigned count) {
    return count * sizeof(uint64_t);
}

unsigned keyed_values(const foundry_keyed *cache) {
    return cache->options.shape_count + cache->options.moving_count;
}

void keyed_copy(uint64_t *to, const uint64_t *from, unsigned count) {
    if (count) memcpy(to, from, keyed_bytes(count));
}

int keyed_same_shape(const foundry_keyed *cache, const uint64_t *one, const uint64_t *other) {
    const unsigned count = cache->options.shape_count;
    return !count || !memcmp(one, other, keyed_bytes(count));
}

int keyed_same_values(const foundry_keyed *cache, const uint64_t *one, const uint64_t *other) {
    const unsigned count = keyed_values(cache);
    return !count || !memcmp(one, other, keyed_bytes(count));
}

struct keyed_slot *keyed_find_slot(foundry_keyed *cache, const uint64_t *values) {
    unsigned i;
    for (i = 0; i < cache->slot_count; i++) {
        struct keyed_slot *slot = &cache->slots[i];
        if (cache->options.dedicated ? keyed_same_values(cache, slot->values, values)
                                     : keyed_same_shape(cache, slot->values, values))
            return slot;
    }
    return NULL;
}

struct keyed_ran *keyed_find_ran(foundry_keyed *cache, const uint64_t *values) {
    unsigned i;
    for (i = 0; i < cache->ran_count; i++)
        if (keyed_same_shape(cache, cache->ran[i].values, values)) return &cache->ran[i];
    return NULL;
}

static void forget_ran(foundry_keyed *cache, struct keyed_ran *gone) {
    const struct keyed_ran kept = *gone;
    *gone = cache->ran[--cache->ran_count];
    cache->ran[cache->ran_count] = kept;
}

struct keyed_ran *keyed_note_ran(foundry_keyed *cache, const uint64_t *values) {
    struct keyed_ran *ran = keyed_find_ran(cache, values);
    unsigned i;
    if (!ran) {
        if (cache->ran_count == cache->ran_most) {
            struct keyed_ran *oldest = cache->ran;
            for (i = 1; i < cache->ran_count; i++)
                if (cache->ran[i].used < oldest->used) oldest = &cache->ran[i];
            forget_ran(cache, oldest);
        }
        ran = &cache->ran[cache->ran_count++];
        keyed_copy(ran->values, values, cache->options.shape_count);
        ran->unfit = 0;
    }
    ran->used = ++cache->clock;
    return ran;
}

static void destroy(foundry_keyed *cache, struct keyed_slot *slot) {
    if (slot->owned) cache->calls.cuGraphExecDestroy(slot->exec);
    slot->exec = NULL;
}

void keyed_drop(foundry_keyed *cache, struct keyed_slot *slot) {
    const struct keyed_slot gone = *slot;
    struct keyed_ran *ran;
    unsigned i;
    destroy(cache, slot);
    *slot = cache->slots[--cache->slot_count];
    cache->slots[cache->slot_count] = gone; /* its room for values */
    for (i = 0; i < cache->slot_count; i++)
        if (keyed_same_shape(cache, cache->slots[i].values, gone.values)) return;
    ran = keyed_find_ran(cache, gone.values);
    if (ran && !ran->unfit) forget_ran(cache, ran);
}

static struct keyed_slot *oldest_of(foundry_keyed *cache, const uint64_t *shape) {
    struct keyed_slot *oldest = NULL;
    unsigned i;
    for (i = 0; i < cache->slot_count; i++)
        if ((!shape || keyed_same_shape(cache, cache->slots[i].values, shape)) &&
            (!oldest || cache->slots[i].used < oldest->used))
            oldest = &cache->slots[i];
    return oldest;
}

struct keyed_slot *keyed_make_slot(foundry_keyed *cache, const uint64_t *values) {
    struct keyed_slot *slot = keyed_find_slot(cache, values);
    const int ran = keyed_find_ran(cache, values) != NULL;
    unsigned i, same = 0;
    if (slot) {
        destroy(cache, slot);
    } else {
        for (i = 0; i < cache->slot_count; i++)
            same += (unsigned)keyed_same_shape(cache, cache->slots[i].values, values);
        if (cache->options.dedicated && same >= cache->options.dedicated) {
            keyed_drop(cache, oldest_of(cache, values));
            cache->counts.dropped++;
        }
        if (cache->slot_count == cache->options.most) {
            keyed_drop(cache, oldest_of(cache, NULL));
            cache->counts.dropped++;
        }
        slot = &cache->slots[cache->slot_count++];
        if (ran) keyed_note_ran(cache, values); /* the last of its shape may have made room */
    }
    keyed_copy(slot->values, values, keyed_values(cache));
    slot->used = ++cache->clock;
    return slot;
}

void foundry_keyed_empty(foundry_keyed *cache) {
    while (cache && cache->slot_count) keyed_drop(cache, &cache->slots[cache->slot_count - 1]);
}
