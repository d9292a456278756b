// The demo's kernels for GPUs. decode.ptx, which the demo loads, is made from this file, once, on a machine with a toolkit:
//
//   nvcc -ptx -arch=compute_75 -o decode.ptx decode.cu
#define DECODE_FUNCTION static __device__ __forceinline__
#include "decode_math.h"

#define ELEMENT const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, row = i / HIDDEN, index = i % HIDDEN

extern "C" __global__ void embed(int *out, const int *ids, const int *table, unsigned batch) {
    ELEMENT;
    if (row < batch) out[i] = table[ids[row] * HIDDEN + index];
}

extern "C" __global__ void normalise(int *out, const int *x, unsigned batch) {
    ELEMENT;
    if (row < batch) out[i] = decode_norm(x + row * HIDDEN, (int)index);
}

extern "C" __global__ void matvec(int *out, const int *x, const int *weights, unsigned batch) {
    ELEMENT;
    if (row < batch) out[i] = decode_matvec(x + row * HIDDEN, weights, (int)index);
}

extern "C" __global__ void append(int *cache, const int *x, const int *positions, unsigned batch) {
    ELEMENT;
    if (row < batch) cache[(row * POSITIONS + (unsigned)positions[row]) * HIDDEN + index] = x[i];
}

extern "C" __global__ void attend(int *out, const int *query, const int *keys, const int *values, const int *positions,
                                  unsigned batch) {
    ELEMENT;
    const unsigned cache = row * POSITIONS * HIDDEN;
    if (row < batch)
        out[i] = decode_attend(query + row * HIDDEN, keys + cache, values + cache, positions[row], (int)index);
}

extern "C" __global__ void add(int *x, const int *y, unsigned batch) {
    ELEMENT;
    (void)index;
    if (row < batch) x[i] = (int)((unsigned)x[i] + (unsigned)y[i]);
}

extern "C" __global__ void pick(int *next, const int *x, const int *table, unsigned batch) {
    const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < batch) next[row] = decode_best(x + row * HIDDEN, table);
}
