// The operations as kernels of a GPU. gpu.ptx is made from this file by remake_ptx.sh, on a machine with a toolkit.
#define ROW_FUNCTION static __device__ __forceinline__
#include "row_math.h"

#define ALL 0xFFFFFFFFu
#define ELEMENT const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x)

// The sum of the values of a warp's lanes, in the order of `fold`, in every lane.
static __device__ __forceinline__ float fold_warp(float value) {
    for (int half = LANES / 2; half; half /= 2) value += __shfl_down_sync(ALL, value, half);
    return __shfl_sync(ALL, value, 0);
}

extern "C" __global__ void embed(float *out, const int *tokens, const signed char *table, const float *scales, int rows,
                                 int width) {
    ELEMENT;
    if (i >= rows * width) return;
    const int token = tokens[i / width];
    out[i] = (float)table[(long)token * width + i % width] * scales[token];
}

// A warp a row.
extern "C" __global__ void normalise(float *out, const float *in, const float *weights, int rows, int width,
                                     float epsilon) {
    const int lane = (int)threadIdx.x;
    const float *from = in + (int)blockIdx.x * width;
    float sum = 0.0f;
    for (int i = lane; i < width; i += LANES) sum += from[i] * from[i];
    const float scale = 1.0f / sqrtf(fold_warp(sum) / (float)width + epsilon);
    for (int i = lane; i < width; i += LANES) out[(int)blockIdx.x * width + i] = from[i] * scale * weights[i];
}

// A warp an element.
extern "C" __global__ void multiply(float *out, const float *in, const signed char *weights, const float *scales,
                                    int rows, int width, int outputs) {
    ELEMENT;
    const int element = i / LANES, lane = i % LANES;
    if (element >= rows * outputs) return;
    const float *from = in + element / outputs * width;
    const signed char *weight = weights + (long)(element % outputs) * width;
    float sum = 0.0f;
    for (int j = lane; j < width; j += LANES) sum += (float)weight[j] * from[j];
    sum = fold_warp(sum);
    if (!lane) out[element] = sum * scales[element % outputs];
}

extern "C" __global__ void rotate(float *rows, const int *positions, const float *cosines, const float *sines,
                                  int count, int heads, int size) {
    ELEMENT;
    const int half = size / 2, row = i / (heads * half);
    if (row >= count || positions[row] < 0) return;
    const int angle = positions[row] * half + i % half;
    float *head = rows + i / half * size;
    const float a = head[i % half], b = head[i % half + half];
    head[i % half] = a * cosines[angle] - b * sines[angle];
    head[i % half + half] = b * cosines[angle] + a * sines[angle];
}

extern "C" __global__ void store(float *cache, const float *rows, const int *positions, const int *streams,
                                 const int *pages, int most, int count, int width) {
    ELEMENT;
    const int row = i / width;
    if (row >= count || positions[row] < 0) return;
    cache[cache_place(pages + streams[row] * most, positions[row], width) + i % width] = rows[i];
}

// One block of attention by one warp: what attend_block in row_math.h does.
static __device__ __forceinline__ void attend_one(float *partial, const float *query, const float *keys,
                                                  const float *values, const int *table, int first, int last, int width,
                                                  int size) {
    __shared__ float weights[CHUNK];
    const int lane = (int)threadIdx.x, count = last - first + 1 < CHUNK ? last - first + 1 : CHUNK;
    float highest = -INFINITY, sum = 0.0f;
    for (int i = lane; i < count; i += LANES) {
        weights[i] = score_of(query, keys + cache_place(table, first + i, width), size);
        highest = fmaxf(highest, weights[i]);
    }
    for (int half = LANES / 2; half; half /= 2) highest = fmaxf(highest, __shfl_xor_sync(ALL, highest, half));
    for (int i = lane; i < count; i += LANES) {
        weights[i] = exponential(weights[i] - highest);
        sum += weights[i];
    }
    sum = fold_warp(sum);
    __syncwarp();
    for (int j = lane; j < size; j += LANES) {
        float value = 0.0f;
        for (int i = 0; i < count; i++) value += weights[i] * values[cache_place(table, first + i, width) + j];
        partial[2 + j] = value;
    }
    if (!lane) partial[0] = count > 0 ? highest : 0.0f, partial[1] = sum;
}

extern "C" __global__ void attend(float *out, const float *query, const float *keys, const float *values,
                                  const int *positions, const int *streams, const int *pages, int most, int rows,
                                  int heads, int key_heads, int size) {
    __shared__ float partial[PARTIAL(LARGEST_HEAD)];
    const int head = (int)blockIdx.y, row = (int)blockIdx.z, place = head / (heads / key_heads) * size;
    const long at = (long)(row * heads + head) * size;
    attend_one(partial, query + at, keys + place, values + place, pages + streams[row] * most, 0, positions[row],
               key_heads * size, size);
    __syncwarp();
    for (int j = (int)threadIdx.x; j < size; j += LANES) out[at + j] = merged(partial, 1, size, j);
}

extern "C" __global__ void attend_part(float *partials, const float *query, const float *keys, const float *values,
                                       const int *positions, const int *streams, const int *pages, int most, int rows,
                                       int heads, int key_heads, int size, int chunks) {
    const int chunk = (int)blockIdx.x, head = (int)blockIdx.y, row = (int)blockIdx.z;
    const int place = head / (heads / key_heads) * size;
    const long at = (long)(row * heads + head);
    attend_one(partials + (at * chunks + chunk) * PARTIAL(size), query + at * size, keys + place, values + place,
               pages + streams[row] * most, chunk * CHUNK, positions[row], key_heads * size, size);
}

extern "C" __global__ void attend_merge(float *out, const float *partials, int rows, int heads, int size, int chunks) {
    ELEMENT;
    if (i < rows * heads * size)
        out[i] = merged(partials + (long)(i / size) * chunks * PARTIAL(size), chunks, size, i % size);
}

extern "C" __global__ void gate(float *out, const float *gates, const float *values, int count) {
    ELEMENT;
    if (i < count) out[i] = gated(gates[i], values[i]);
}

extern "C" __global__ void add(float *to, const float *from, int count) {
    ELEMENT;
    if (i < count) to[i] += from[i];
}
