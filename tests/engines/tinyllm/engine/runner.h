/* Runs passes: each launch by launch, or through foundry's cache of held graphs (foundry_keyed.h).
 *
 * The shape of a pass is the shape of its key. What moves is the buffer that its inputs lie in; all else that differs
 * between passes of one shape is in that buffer, in device memory.
 */
#ifndef TINYLLM_RUNNER_H
#define TINYLLM_RUNNER_H

#include "keyed/foundry_keyed.h"
#include "model.h"

#define GRAPH_SET "tinyllm"
#define MOST_HELD 64

/* Of foundry_keyed_counts, for statistics and metrics. */
#define RUNNER_COUNTS(X)                                                                                               \
    X(eager) X(captured) X(updated) X(replayed) X(restored) X(dropped) X(refused) X(emptied) X(held)

struct runner_options {
    bool graphs;    /* need the model on a GPU or the simulator */
    int held;       /* the least recently used graph makes room for another one */
    int dedicated;  /* execs of a shape, of which none is updated; 0 = one, which is */
    uint64_t floor; /* bytes of free device memory below which none is held */
};

struct runner {
    struct model *model;
    foundry_keyed *cache; /* NULL = launch by launch */
    int held;
    long passes, eager; /* `eager` without a cache */
};

/* What runner_launch is to launch: a pass whose inputs are written. */
struct runner_work {
    struct model *model;
    const struct batch *batch;
};

void runner_open(struct runner *runner, struct model *model, const struct runner_options *options);
void runner_close(struct runner *runner);
/* Has a graph ready for each shape, if graphs are on, and says to foundry that the program is ready to serve. */
void runner_warm(struct runner *runner);
/* Runs a pass in the buffer whose turn it is, and reads the logits of its rows. */
void runner_pass(struct runner *runner, struct batch *batch, float *logits);
int runner_launch(void *work, void *stream);
/* The values of a pass's key: streams, window, chunks, buffer. */
void runner_key(const struct batch *batch, uint64_t *values);
/* What became of passes and graphs. */
foundry_keyed_counts runner_counts(const struct runner *runner);

/* Compares passes through graphs with those without, over all shapes and their seams; prints the report as a line.
 * Returns the verdict, see foundry_keyed.h. */
int runner_parity(struct runner *runner);

#endif
