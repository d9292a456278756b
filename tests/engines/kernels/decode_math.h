/* The arithmetic of the demo's decode step, for the simulator and for GPUs alike. Integers only, so that the same prompt
 * gives the same tokens everywhere. Each function computes one element of one kernel's output.
 *
 * DECODE_FUNCTION is what a function of the target is marked with.
 */
#ifndef DECODE_MATH_H
#define DECODE_MATH_H

#define HIDDEN 64
#define VOCABULARY 256
#define POSITIONS 128

/* Multiplication and addition wrap, as unsigned arithmetic does. */
DECODE_FUNCTION int decode_dot(const int *a, const int *b, int count) {
    unsigned sum = 0;
    for (int i = 0; i < count; ++i) sum += (unsigned)a[i] * (unsigned)b[i];
    return (int)sum;
}

/* Newton's method on integers; value >= 0. */
DECODE_FUNCTION int decode_root(long long value) {
    if (value < 2) return (int)value;
    long long guess = value, next = (guess + 1) / 2;
    while (next < guess) {
        guess = next;
        next = (guess + value / guess) / 2;
    }
    return (int)guess;
}

/* Scales a row to a root mean square of about 64. */
DECODE_FUNCTION int decode_norm(const int *row, int index) {
    long long squares = 0;
    for (int i = 0; i < HIDDEN; ++i) squares += (long long)row[i] * row[i];
    return (int)((long long)row[index] * 64 / (decode_root(squares / HIDDEN) + 1));
}

/* Attention of one row over the positions that its cache holds: weights fall off with the distance from the best score. */
DECODE_FUNCTION int decode_attend(const int *query, const int *keys, const int *values, int position, int index) {
    int best = decode_dot(query, keys, HIDDEN);
    for (int p = 1; p <= position; ++p) {
        const int score = decode_dot(query, keys + p * HIDDEN, HIDDEN);
        if (score > best) best = score;
    }
    long long sum = 0, total = 0;
    for (int p = 0; p <= position; ++p) {
        const long long distance = (long long)best - decode_dot(query, keys + p * HIDDEN, HIDDEN);
        const long long weight = (1 << 20) / (1024 + distance / 64);
        sum += weight * values[p * HIDDEN + index];
        total += weight;
    }
    return (int)(total ? sum / total : 0);
}

DECODE_FUNCTION int decode_matvec(const int *row, const int *weights, int index) {
    return decode_dot(row, weights + index * HIDDEN, HIDDEN) / 256;
}

DECODE_FUNCTION int decode_best(const int *row, const int *table) {
    int best = 0, highest = decode_dot(row, table, HIDDEN);
    for (int token = 1; token < VOCABULARY; ++token) {
        const int score = decode_dot(row, table + token * HIDDEN, HIDDEN);
        if (score > highest) {
            highest = score;
            best = token;
        }
    }
    return best;
}

#endif
