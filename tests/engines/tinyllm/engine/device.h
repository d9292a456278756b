/* What the model asks of a device: memory, and each operation. Tensors of a call lie with that device, rows first.
 *
 * Operations on a GPU are launched on its one stream and take no host value that moves between passes: tokens,
 * positions and pages are read from device memory, so that a captured launch can be replayed as it is.
 */
#ifndef TINYLLM_DEVICE_H
#define TINYLLM_DEVICE_H

#include "tensor.h"

/* Where each row of a pass stands. Rows with position -1 are padding: they store nothing and attend to nothing. */
struct places {
    struct tensor positions; /* int32, one a row */
    struct tensor streams;   /* int32, one a row: a line of `pages` */
    struct tensor pages;     /* int32, (streams, pages of a stream) */
};

struct attention {
    const struct tensor *query, *keys, *values; /* keys and values: (pages, PAGE, heads * head size) */
    const struct tensor *partials;              /* room for chunks > 1 */
    const struct places *places;
    int chunks; /* each row stands below chunks * CHUNK */
    int heads, key_heads, head_size;
};

struct device {
    const char *name;
    struct storage *(*take)(struct device *device, size_t bytes); /* zeroed, one reference */
    void (*write)(struct device *device, const struct tensor *tensor, const void *bytes);
    void (*read)(struct device *device, const struct tensor *tensor, void *bytes); /* waits, too */
    void (*wait)(struct device *device); /* for all that came before; `bytes` of a write may go after that */

    void (*embed)(struct device *device, const struct tensor *out, const struct tensor *tokens,
                  const struct tensor *table, const struct tensor *scales);
    void (*normalise)(struct device *device, const struct tensor *out, const struct tensor *in,
                      const struct tensor *weights, float epsilon);
    /* out = in times the transposed int8 weights, each row of which has a scale. */
    void (*multiply)(struct device *device, const struct tensor *out, const struct tensor *in,
                     const struct tensor *weights, const struct tensor *scales);
    void (*rotate)(struct device *device, const struct tensor *rows, const struct places *places,
                   const struct tensor *cosines, const struct tensor *sines, int head_size);
    void (*store)(struct device *device, const struct tensor *cache, const struct tensor *rows,
                  const struct places *places);
    void (*attend)(struct device *device, const struct tensor *out, const struct attention *attention);
    void (*gate)(struct device *device, const struct tensor *out, const struct tensor *gate, const struct tensor *up);
    void (*add)(struct device *device, const struct tensor *to, const struct tensor *from);
};

struct device *cpu_open(void);

#endif
