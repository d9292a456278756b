/* Kernels for the simulator's tests. */
#include "sim_kernel.h"

/* kernel lines are read by make_image.py */
// kernel: vector_add(ptr, ptr, ptr, u32)
FOUNDRY_SIM_KERNEL(vector_add) {
    float *out = FOUNDRY_SIM_ARGUMENT(0, float *);
    const float *a = FOUNDRY_SIM_ARGUMENT(1, const float *);
    const float *b = FOUNDRY_SIM_ARGUMENT(2, const float *);
    uint32_t count = FOUNDRY_SIM_ARGUMENT(3, uint32_t);
    uint64_t threads = FOUNDRY_SIM_THREADS_X(launch);
    for (uint64_t index = 0; index < threads && index < count; ++index) out[index] = a[index] + b[index];
}

// kernel: add_constant(ptr, u8, u32, u64)
FOUNDRY_SIM_KERNEL(add_constant) {
    uint32_t *data = FOUNDRY_SIM_ARGUMENT(0, uint32_t *);
    uint8_t amount = FOUNDRY_SIM_ARGUMENT(1, uint8_t);
    uint32_t scale = FOUNDRY_SIM_ARGUMENT(2, uint32_t);
    uint64_t count = FOUNDRY_SIM_ARGUMENT(3, uint64_t);
    for (uint64_t index = 0; index < count; ++index) data[index] += amount * scale;
}

// global: counter 8
FOUNDRY_SIM_GLOBAL uint64_t counter = 7;

// kernel: count()
FOUNDRY_SIM_KERNEL(count) {
    counter += 1;
}

// kernel: store_counter(ptr)
FOUNDRY_SIM_KERNEL(store_counter) {
    *FOUNDRY_SIM_ARGUMENT(0, uint64_t *) = counter;
}

// kernel: shared_sum(ptr, ptr, u32) static=256
FOUNDRY_SIM_KERNEL(shared_sum) {
    uint32_t *out = FOUNDRY_SIM_ARGUMENT(0, uint32_t *);
    const uint32_t *in = FOUNDRY_SIM_ARGUMENT(1, const uint32_t *);
    uint32_t count = FOUNDRY_SIM_ARGUMENT(2, uint32_t);
    uint32_t *scratch = (uint32_t *)((char *)launch->shared + launch->static_shared_bytes);
    *scratch = 0;
    for (uint32_t index = 0; index < count; ++index) *scratch += in[index];
    *out = *scratch + launch->grid[0] * 1000000u;
}

// kernel: wide(u8[48], ptr)
FOUNDRY_SIM_KERNEL(wide) {
    const uint8_t *bytes = (const uint8_t *)arguments[0];
    uint32_t sum = 0;
    for (int index = 0; index < 48; ++index) sum += bytes[index];
    *FOUNDRY_SIM_ARGUMENT(1, uint32_t *) = sum;
}

// kernel: append(ptr, u32)
FOUNDRY_SIM_KERNEL(append) {
    uint32_t *list = FOUNDRY_SIM_ARGUMENT(0, uint32_t *);
    list[1 + list[0]++] = FOUNDRY_SIM_ARGUMENT(1, uint32_t);
}
