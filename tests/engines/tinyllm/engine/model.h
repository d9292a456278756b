/* The model: weights, cache and one pass over rows of several streams. */
#ifndef TINYLLM_MODEL_H
#define TINYLLM_MODEL_H

#include "device.h"
#include "safetensors.h"

#define MOST_STREAMS 4
#define LARGEST_WINDOW 4
#define MOST_ROWS (MOST_STREAMS * LARGEST_WINDOW)
#define MOST_BUFFERS 4

struct configuration {
    int layers, hidden, heads, key_heads, head_size, inner, vocabulary, context;
    float epsilon, base; /* of the norms; of the rotary angles */
};

struct quantised {
    struct tensor weights, scales;
};

struct layer {
    struct tensor attention_norm, inner_norm, keys, values; /* the last two are the layer's cache */
    struct quantised query, key, value, output, gate, up, down;
};

/* What decides which launches a pass makes. Everything else lies in device memory, in one of the buffers of inputs:
 * which one is the only host value that launches take and that moves. */
struct shape {
    int streams; /* 1, 2 or 4 */
    int window;  /* rows of each stream, 1 to LARGEST_WINDOW */
    int chunks;  /* of positions, see row_math.h: its attention kernels change at 256 and 512 positions */
};

/* The rows of a pass, `window` of each stream after another. Padding has position -1, its token is not looked at. */
struct batch {
    struct shape shape;
    int buffer;
    int tokens[MOST_ROWS], positions[MOST_ROWS];
    const int *pages[MOST_STREAMS]; /* model_stream_pages() entries each; NULL for a stream of padding */
};

struct model {
    struct configuration configuration;
    struct device *device;
    struct quantised table, head;
    struct tensor last_norm, cosines, sines;
    struct layer *layers;
    struct tensor inputs; /* written once a pass: tokens, positions, streams, pages; a row of them for each buffer */
    int *moving;          /* one buffer on the host */
    int buffers;
    struct tensor stand, normed, query, key, value, mixed, gate, up, partials, logits;
};

/* `buffers` of inputs, for passes to take by turns. */
void model_open(struct model *model, struct device *device, const char *path, int buffers);
void model_close(struct model *model);
int model_stream_pages(const struct model *model); /* pages of a stream of full length */
int model_chunks(int positions);                   /* that so many positions take */

/* Writes what moves, then launches the pass, or lets the caller replay it, then reads one row of logits a row. */
void model_write(struct model *model, const struct batch *batch);
void model_launch(struct model *model, struct shape shape, int buffer);
void model_read(struct model *model, struct shape shape, float *logits);

/* Calls `visit` for each tensor that launches refer to, in a fixed order. */
void model_each(struct model *model, void (*visit)(const struct tensor *tensor, void *user), void *user);

#endif
