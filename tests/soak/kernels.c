/* The soak program's kernel for the simulator; its twin for a GPU is the PTX in work.py. */
#include "sim_kernel.h"

// kernel: mix(ptr, u32, u32)
FOUNDRY_SIM_KERNEL(mix) {
    uint32_t *words = FOUNDRY_SIM_ARGUMENT(0, uint32_t *);
    uint32_t count = FOUNDRY_SIM_ARGUMENT(1, uint32_t);
    uint32_t add = FOUNDRY_SIM_ARGUMENT(2, uint32_t);
    for (uint32_t index = 0; index < count; ++index) words[index] = words[index] * 3 + index + add;
}
