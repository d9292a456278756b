/* The demo's kernels for the simulator: the same kernels as decode.cu, each looping over its own grid. */
#define DECODE_FUNCTION static inline
#include "decode_math.h"
#include "sim_kernel.h"

#define ROWS(index) FOUNDRY_SIM_ARGUMENT(index, const int *)

// kernel: embed(ptr, ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(embed) {
    int *out = FOUNDRY_SIM_ARGUMENT(0, int *);
    const int *ids = ROWS(1), *table = ROWS(2);
    const unsigned count = FOUNDRY_SIM_ARGUMENT(3, unsigned) * HIDDEN;
    for (unsigned i = 0; i < count; ++i) out[i] = table[ids[i / HIDDEN] * HIDDEN + i % HIDDEN];
}

// kernel: normalise(ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(normalise) {
    int *out = FOUNDRY_SIM_ARGUMENT(0, int *);
    const int *x = ROWS(1);
    const unsigned count = FOUNDRY_SIM_ARGUMENT(2, unsigned) * HIDDEN;
    for (unsigned i = 0; i < count; ++i) out[i] = decode_norm(x + i / HIDDEN * HIDDEN, (int)(i % HIDDEN));
}

// kernel: matvec(ptr, ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(matvec) {
    int *out = FOUNDRY_SIM_ARGUMENT(0, int *);
    const int *x = ROWS(1), *weights = ROWS(2);
    const unsigned count = FOUNDRY_SIM_ARGUMENT(3, unsigned) * HIDDEN;
    for (unsigned i = 0; i < count; ++i) out[i] = decode_matvec(x + i / HIDDEN * HIDDEN, weights, (int)(i % HIDDEN));
}

// kernel: append(ptr, ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(append) {
    int *cache = FOUNDRY_SIM_ARGUMENT(0, int *);
    const int *x = ROWS(1), *positions = ROWS(2);
    const unsigned count = FOUNDRY_SIM_ARGUMENT(3, unsigned) * HIDDEN;
    for (unsigned i = 0; i < count; ++i)
        cache[(i / HIDDEN * POSITIONS + (unsigned)positions[i / HIDDEN]) * HIDDEN + i % HIDDEN] = x[i];
}

// kernel: attend(ptr, ptr, ptr, ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(attend) {
    int *out = FOUNDRY_SIM_ARGUMENT(0, int *);
    const int *query = ROWS(1), *keys = ROWS(2), *values = ROWS(3), *positions = ROWS(4);
    const unsigned count = FOUNDRY_SIM_ARGUMENT(5, unsigned) * HIDDEN;
    for (unsigned i = 0; i < count; ++i) {
        const unsigned row = i / HIDDEN, cache = row * POSITIONS * HIDDEN;
        out[i] = decode_attend(query + row * HIDDEN, keys + cache, values + cache, positions[row], (int)(i % HIDDEN));
    }
}

// kernel: add(ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(add) {
    int *x = FOUNDRY_SIM_ARGUMENT(0, int *);
    const int *y = ROWS(1);
    const unsigned count = FOUNDRY_SIM_ARGUMENT(2, unsigned) * HIDDEN;
    for (unsigned i = 0; i < count; ++i) x[i] = (int)((unsigned)x[i] + (unsigned)y[i]);
}

// kernel: pick(ptr, ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(pick) {
    int *next = FOUNDRY_SIM_ARGUMENT(0, int *);
    const int *x = ROWS(1), *table = ROWS(2);
    const unsigned batch = FOUNDRY_SIM_ARGUMENT(3, unsigned);
    for (unsigned row = 0; row < batch; ++row) next[row] = decode_best(x + row * HIDDEN, table);
}
