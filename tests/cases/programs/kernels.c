/* Kernels that need what few kernels need. */
#include "sim_kernel.h"

// kernel: add_one(ptr)
FOUNDRY_SIM_KERNEL(add_one) {
    *FOUNDRY_SIM_ARGUMENT(0, uint32_t *) += 1;
}

/* Through the last byte of its dynamic shared memory. */
// kernel: shared_last(ptr, u32)
FOUNDRY_SIM_KERNEL(shared_last) {
    uint8_t *last = (uint8_t *)launch->shared + launch->static_shared_bytes + launch->dynamic_shared_bytes - 1;
    *last = (uint8_t)FOUNDRY_SIM_ARGUMENT(1, uint32_t);
    *FOUNDRY_SIM_ARGUMENT(0, uint32_t *) = *last + (launch->dynamic_shared_bytes << 8);
}

// kernel: geometry(ptr)
FOUNDRY_SIM_KERNEL(geometry) {
    *FOUNDRY_SIM_ARGUMENT(0, uint32_t *) = launch->cluster[0] * 10 + launch->cooperative;
}

// kernel: sum_many(u8[8000], ptr)
FOUNDRY_SIM_KERNEL(sum_many) {
    const uint8_t *bytes = (const uint8_t *)arguments[0];
    uint32_t sum = 0;
    for (int index = 0; index < 8000; ++index) sum += bytes[index];
    *FOUNDRY_SIM_ARGUMENT(1, uint32_t *) = sum;
}

// global: offset 4
FOUNDRY_SIM_GLOBAL uint32_t offset = 5;
// global: table 64
FOUNDRY_SIM_GLOBAL uint32_t table[16];

// kernel: look_up(ptr, u32)
FOUNDRY_SIM_KERNEL(look_up) {
    *FOUNDRY_SIM_ARGUMENT(0, uint32_t *) = table[FOUNDRY_SIM_ARGUMENT(1, uint32_t)] + offset;
}
