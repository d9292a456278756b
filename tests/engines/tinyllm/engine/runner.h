/* Runs passes: each launch by launch, or through a cache of held graphs, keyed by the shape of a pass.
 *
 * What moves between passes of one shape lies in device memory, so a replay needs no update. A new shape runs launch by
 * launch once, and is captured behind that. Under foundry, captured graphs are labelled, and restored ones are taken
 * instead of a capture.
 */
#ifndef TINYLLM_RUNNER_H
#define TINYLLM_RUNNER_H

#include "model.h"

#define GRAPH_SET "tinyllm"
#define MOST_HELD 64

struct held_graph {
    struct shape shape;
    void *exec;     /* ours, or NULL */
    void *restored; /* the hook's, or NULL */
    long last_used;
};

struct runner {
    struct model *model;
    bool graphs;
    int most_held; /* the least recently used graph makes room for another one */
    struct held_graph held[MOST_HELD];
    int held_count;
    long clock;
    char *fingerprint; /* of all that graphs were built for; a restored graph must have the same */
    long eager, captured, replayed, restored, dropped;
};

/* Graphs need the model on a GPU or the simulator. */
void runner_open(struct runner *runner, struct model *model, bool graphs, int most_held);
void runner_close(struct runner *runner);
/* Has a graph ready for each shape, if graphs are on, and says to foundry that the program is ready to serve. */
void runner_warm(struct runner *runner);
/* Runs a pass and reads the logits of its rows. */
void runner_pass(struct runner *runner, const struct batch *batch, float *logits);

#endif
