/* foundry_keyed.h - CUDA graphs by key, for engines in C and C++: replayed, updated in place, or captured; and compared
 * with eager passes. C89 and C++; Linux.
 *
 * Compile the .c files beside this one into the engine, with -ldl; they include ../capi/foundry.h. Nothing else is
 * needed: the driver and the hook are found at run time, and without a hook there is only no archive.
 *
 * Names and lists that are passed are copied. A cache is for one stream, and for one thread at a time, in whose current
 * context the stream is. Of several caches of one set at once, the first has the archive's graphs, until it is closed.
 */
#ifndef FOUNDRY_KEYED_H
#define FOUNDRY_KEYED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct foundry_keyed foundry_keyed;

/* Puts a pass on the stream, and does nothing else: it runs once for an eager pass and once for each recording. Returns
 * 0, or the driver's CUresult, or any other number that the caller of foundry_keyed_run is to get. */
typedef int (*foundry_keyed_record)(void *user, void *stream);

typedef struct foundry_keyed_options {
    const char *set; /* the cache's name in archives and reports */
    void *stream;    /* CUstream */
    /* Names of a key's values. The first `shape_count` decide which launches a pass makes; each combination of them has
     * an exec of its own. The other `moving_count` are every other host value that the launches take. */
    const char *const *names;
    unsigned shape_count, moving_count;
    unsigned most; /* held graphs at most, up to 65536; 0 = 64 */
    /* 0: where moving values differ from what an exec was made for, it is updated in place. An exec that was ever
     * updated stays slower than one that was not. N: none is updated; up to N execs of a shape are held, one for each
     * combination of moving values. */
    unsigned dedicated;
    /* Bytes of free device memory. Below it the cache empties itself, and passes run eagerly until there is more. */
    uint64_t floor;
    /* Text that must be the same at capture and restore, for all that no key names: the build of the kernels, sizes,
     * addresses (relative to foundry_range_base). NULL = nothing. */
    const char *inputs;
} foundry_keyed_options;

/* How a pass was run. */
#define FOUNDRY_KEYED_EAGER 0
#define FOUNDRY_KEYED_CAPTURED 1
#define FOUNDRY_KEYED_UPDATED 2
#define FOUNDRY_KEYED_REPLAYED 3

typedef struct foundry_keyed_counts {
    uint64_t eager, captured, updated, replayed; /* passes; foundry_keyed_warm adds to the first two, too */
    uint64_t restored;                           /* graphs that the archive gave */
    uint64_t dropped;                            /* made room for another */
    uint64_t refused;                            /* updates, which then made another exec */
    uint64_t emptied;                            /* times that memory ran low */
    uint64_t held;                               /* now */
} foundry_keyed_counts;

/* NULL if there is no driver, no memory, or the options make no sense; foundry_keyed_reason(NULL) says which. */
foundry_keyed *foundry_keyed_open(const foundry_keyed_options *options);
void foundry_keyed_close(foundry_keyed *cache); /* NULL is no harm */

/* Runs a pass: `values` has one for each name, in their order. 0, or the driver's CUresult, or what `record` returned
 * in an eager pass. `done`, if not NULL, tells how. A shape runs eagerly once before it is first recorded; a pass that
 * cannot be recorded runs eagerly, and so do all of its shape from then on. */
int foundry_keyed_run(foundry_keyed *cache, const uint64_t *values, foundry_keyed_record record, void *user, int *done);

/* Has a graph ready for that shape: the archive's, or one of a pass that runs in a scratch phase. 0, or -1 if passes of
 * the shape run eagerly, or an error as above. A restore skips what only a capture ran, so warm the same keys in the
 * same order in every start, largest first, and call foundry_commit behind that. The pass leaves what it writes. */
int foundry_keyed_warm(foundry_keyed *cache, const uint64_t *values, foundry_keyed_record record, void *user);

/* Drops all execs. Those of the archive are kept by the hook, and are found again. */
void foundry_keyed_empty(foundry_keyed *cache);
foundry_keyed_counts foundry_keyed_count(const foundry_keyed *cache);
/* Why the last graph was not restored, recorded or updated, or what the driver said; "" if nothing was wrong yet. */
const char *foundry_keyed_reason(const foundry_keyed *cache);

/* Parity: twins from the same state, one through the graphs of a cache, one eager, compared after each round. */

typedef struct foundry_parity_span {
    const char *name;
    uint64_t address, bytes; /* of device memory */
} foundry_parity_span;

typedef struct foundry_parity_options {
    foundry_keyed *cache;
    /* All that passes read and write, with their inputs; it is put back at the end. Outputs are compared first, to be
     * named first, and may be none. */
    const foundry_parity_span *state, *outputs;
    unsigned state_count, output_count;
    /* The rounds must cross every seam of the key: each name takes two values at least, but for those in `constant`. */
    unsigned rounds;
    const char *const *constant;
    unsigned constant_count;
    /* The values that are left out of the key, one after another; NULL = each that moves, or, of a key where none does,
     * each of its shape. */
    const char *const *controls;
    unsigned control_count;
    /* Writes the inputs of a round, from 0, and fills its key. It does the same each time; each twin and each planted
     * control calls it before `record`. 0, or an error, which ends the comparison. */
    int (*begin)(void *user, unsigned round, uint64_t *values);
    foundry_keyed_record record; /* of the round that was begun last */
    void *user;
} foundry_parity_options;

#define FOUNDRY_PARITY_EQUAL 0
#define FOUNDRY_PARITY_DIFFERENT 1
#define FOUNDRY_PARITY_MISUSE 2  /* the options make no sense */
#define FOUNDRY_PARITY_REFUSED 3 /* nothing differed, but that proves nothing, or the comparison could not be made */

typedef struct foundry_parity_report {
    int verdict;
    uint64_t rounds, eager, captured, updated, replayed; /* the first is the sum of the others */
    uint64_t bytes;                                      /* of outputs and state, compared */
    uint64_t seams;                                      /* names of the key that took several values */
    uint64_t controls, caught;                           /* planted, and found to differ */
    char reason[256];                                    /* what differed, or why it proves nothing; "" if equal */
} foundry_parity_report;

/* Whether `foundry parity` started this process. */
int foundry_parity_wanted(void);

/* Runs the rounds through the cache and eagerly, each from the same state, and compares all bytes. If the cache was so
 * warm that no round was captured, they run once more through an empty twin of it. Rounds that were replayed, updated
 * (unless nothing moves, or execs are dedicated) and captured must all have occurred. Then a control is planted for
 * each value that is to be left out: the rounds run through a cache whose key lacks it, and must differ.
 *
 * Returns the verdict. Under `foundry parity` the report goes there, too; misuse is told there as refused. */
int foundry_parity_run(const foundry_parity_options *options, foundry_parity_report *report);

/* Writes the report as one line of text without a line end, and returns its length, as snprintf does. */
int foundry_parity_line(const foundry_keyed *cache, const foundry_parity_report *report, char *line, size_t size);

#ifdef __cplusplus
}
#endif

#endif
