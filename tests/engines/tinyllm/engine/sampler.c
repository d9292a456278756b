#include "sampler.h"

#include <math.h>

/* A number in [0, 1), by splitmix64. */
static double random_number(uint64_t seed, int position) {
    uint64_t bits = seed * 0x9E3779B97F4A7C15u + ((uint64_t)position + 1) * 0xD1B54A32D192ED03u;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    bits ^= bits >> 31;
    return (double)(bits >> 11) / 9007199254740992.0;
}

static int highest(const float *logits, int count) {
    int best = 0;
    for (int token = 1; token < count; token++)
        if (logits[token] > logits[best]) best = token;
    return best;
}

int sample(const float *logits, int count, double temperature, uint64_t seed, int position) {
    const int best = highest(logits, count);
    double total = 0;
    if (temperature <= 0) return best;
    for (int token = 0; token < count; token++) total += exp(((double)logits[token] - logits[best]) / temperature);
    double left = random_number(seed, position) * total;
    for (int token = 0; token < count; token++) {
        left -= exp(((double)logits[token] - logits[best]) / temperature);
        if (left < 0) return token;
    }
    return best;
}
