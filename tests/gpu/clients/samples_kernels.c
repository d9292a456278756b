/* The kernels of samples.cu, for the simulator. */
#include "sim_kernel.h"

// kernel: mix(ptr, u32, u32)
FOUNDRY_SIM_KERNEL(mix) {
    uint32_t *data = FOUNDRY_SIM_ARGUMENT(0, uint32_t *);
    uint32_t count = FOUNDRY_SIM_ARGUMENT(1, uint32_t), by = FOUNDRY_SIM_ARGUMENT(2, uint32_t);
    uint64_t threads = FOUNDRY_SIM_THREADS_X(launch);
    for (uint64_t index = 0; index < threads && index < count; ++index)
        data[index] = (data[index] ^ data[index] >> 15) * 2654435761u + by;
}

// kernel: combine(ptr, ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(combine) {
    uint32_t *out = FOUNDRY_SIM_ARGUMENT(0, uint32_t *);
    const uint32_t *one = FOUNDRY_SIM_ARGUMENT(1, const uint32_t *), *other = FOUNDRY_SIM_ARGUMENT(2, const uint32_t *);
    uint32_t count = FOUNDRY_SIM_ARGUMENT(3, uint32_t);
    uint64_t threads = FOUNDRY_SIM_THREADS_X(launch);
    for (uint64_t index = 0; index < threads && index < count; ++index)
        out[index] += one[index] + 3 * other[count - 1 - index];
}
