#include "sim_kernel.h"

// kernel: fill(ptr, u32, u32)
FOUNDRY_SIM_KERNEL(fill) {
    uint32_t *out = FOUNDRY_SIM_ARGUMENT(0, uint32_t *);
    for (uint32_t at = 0; at < FOUNDRY_SIM_ARGUMENT(2, uint32_t); at++) out[at] = FOUNDRY_SIM_ARGUMENT(1, uint32_t);
}

// kernel: add(ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(add) {
    uint32_t *out = FOUNDRY_SIM_ARGUMENT(0, uint32_t *);
    const uint32_t *in = FOUNDRY_SIM_ARGUMENT(1, const uint32_t *);
    for (uint32_t at = 0; at < FOUNDRY_SIM_ARGUMENT(2, uint32_t); at++) out[at] += in[at];
}

// kernel: spare(ptr) dynamic=1234
FOUNDRY_SIM_KERNEL(spare) {
    FOUNDRY_SIM_ARGUMENT(0, uint32_t *)[0] = 0;
}
