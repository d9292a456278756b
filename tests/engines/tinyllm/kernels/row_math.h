/* The arithmetic of the engine, for its CPU path, the simulator and GPUs alike. Each sum has one order, and nothing
 * here is left to a maths library or to a fused multiply-add (compile with -ffp-contract=off, or nvcc's --fmad=false):
 * the three give the same bits.
 *
 * ROW_FUNCTION is what a function of the target is marked with. A sum over a row is made by LANES partial sums, lane l
 * taking elements l, l + LANES, ..., that are then folded in halves: what the lanes of a warp do.
 */
#ifndef TINYLLM_ROW_MATH_H
#define TINYLLM_ROW_MATH_H

#include <math.h>

#define LANES 32
#define CHUNK 256         /* positions that one attention block takes; more take several blocks and a merge */
#define PAGE 64           /* positions in a page of the cache */
#define LARGEST_CHUNKS 16 /* contexts are at most this many chunks long */
#define LARGEST_HEAD 128
#define PARTIAL(head_size) ((head_size) + 2) /* of one block: highest score, sum of weights, weighted values */

/* e to that power; exactly 1 for 0. */
ROW_FUNCTION float exponential(float power) {
    union {
        unsigned bits;
        float value;
    } scale;
    if (power < -87.0f) return 0.0f;
    if (power > 88.0f) power = 88.0f;
    const float whole = floorf(power * 1.44269504f + 0.5f);
    float rest = power - whole * 0.693145751953125f;
    rest = rest - whole * 1.42860677e-6f;
    float sum = 0.00138888889f;
    sum = sum * rest + 0.00833333333f;
    sum = sum * rest + 0.0416666667f;
    sum = sum * rest + 0.166666667f;
    sum = sum * rest + 0.5f;
    sum = sum * rest + 1.0f;
    sum = sum * rest + 1.0f;
    scale.bits = (unsigned)((int)whole + 127) << 23;
    return sum * scale.value;
}

ROW_FUNCTION float gated(float gate, float value) {
    return gate / (1.0f + exponential(-gate)) * value;
}

/* Where a position of a stream lies in the cache; `table` names the stream's pages. */
ROW_FUNCTION long cache_place(const int *table, int position, int width) {
    return ((long)table[position / PAGE] * PAGE + position % PAGE) * width;
}

ROW_FUNCTION float score_of(const float *query, const float *key, int head_size) {
    float sum = 0.0f;
    for (int i = 0; i < head_size; i++) sum += query[i] * key[i];
    return sum / sqrtf((float)head_size);
}

/* One element of the result of all blocks of one row and head; a block without positions has a sum of 0. */
ROW_FUNCTION float merged(const float *partials, int chunks, int head_size, int index) {
    const int stride = PARTIAL(head_size);
    float highest = 0.0f, total = 0.0f, value = 0.0f;
    int seen = 0;
    for (int chunk = 0; chunk < chunks; chunk++) {
        const float *partial = partials + chunk * stride;
        if (partial[1] > 0.0f && (!seen || partial[0] > highest)) highest = partial[0], seen = 1;
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
        const float *partial = partials + chunk * stride;
        if (!(partial[1] > 0.0f)) continue;
        const float weight = exponential(partial[0] - highest);
        total += partial[1] * weight;
        value += partial[2 + index] * weight;
    }
    return seen ? value / total : 0.0f;
}

#ifndef __CUDACC__

ROW_FUNCTION float fold(float *lanes) {
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

ROW_FUNCTION float dot_quantised(const signed char *weights, const float *row, int count) {
    float lanes[LANES] = {0};
    int i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++) lanes[lane] += (float)weights[i + lane] * row[i + lane];
    for (int lane = 0; i + lane < count; lane++) lanes[lane] += (float)weights[i + lane] * row[i + lane];
    return fold(lanes);
}

/* What a row is multiplied by so that its root mean square is 1. */
ROW_FUNCTION float inverse_mean_square(const float *row, int count, float epsilon) {
    float lanes[LANES] = {0};
    for (int i = 0; i < count; i++) lanes[i % LANES] += row[i] * row[i];
    return 1.0f / sqrtf(fold(lanes) / (float)count + epsilon);
}

/* One block of attention: positions from `first` up to CHUNK of them, none beyond `last`. */
ROW_FUNCTION void attend_block(float *partial, const float *query, const float *keys, const float *values,
                               const int *table, int first, int last, int width, int head_size) {
    float weights[CHUNK], lanes[LANES] = {0};
    const int count = last - first + 1 < CHUNK ? last - first + 1 : CHUNK;
    for (int i = 0; i < PARTIAL(head_size); i++) partial[i] = 0.0f;
    for (int i = 0; i < count; i++) {
        weights[i] = score_of(query, keys + cache_place(table, first + i, width), head_size);
        if (!i || weights[i] > partial[0]) partial[0] = weights[i];
    }
    for (int i = 0; i < count; i++) {
        weights[i] = exponential(weights[i] - partial[0]);
        lanes[i % LANES] += weights[i];
        const float *value = values + cache_place(table, first + i, width);
        for (int j = 0; j < head_size; j++) partial[2 + j] += weights[i] * value[j];
    }
    partial[1] = fold(lanes);
}

/* Turns pairs (i, i + half) of one head by the angles of a position. */
ROW_FUNCTION void rotate_head(float *head, const float *cosines, const float *sines, int half) {
    for (int i = 0; i < half; i++) {
        const float a = head[i], b = head[i + half];
        head[i] = a * cosines[i] - b * sines[i];
        head[i + half] = b * cosines[i] + a * sines[i];
    }
}

#endif

#endif
