/* Picks the next token. The choice at a position depends on its logits, the seed and the position only, so that it is
 * the same whether a pass verified one row or four.
 */
#ifndef TINYLLM_SAMPLER_H
#define TINYLLM_SAMPLER_H

#include "common.h"

/* Temperature 0: the highest logit, the first of equal ones. */
int sample(const float *logits, int count, double temperature, uint64_t seed, int position);

#endif
