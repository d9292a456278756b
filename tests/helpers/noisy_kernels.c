#include "sim_kernel.h"

#include <stdlib.h>

/* What noisy_program.py hands to each kernel, with its noise. */
struct given {
    uint32_t value, padding;
    char canary[32];
    uint64_t stack;
    uint64_t constant;
};

static void write_all(const void *const *arguments, uint32_t value) {
    uint32_t *out = FOUNDRY_SIM_ARGUMENT(0, uint32_t *);
    for (uint32_t at = 0; at < 16; at++) out[at] = value + at;
}

#define GIVEN ((const struct given *)arguments[1])

// kernel: quiet(ptr, u8[56])
FOUNDRY_SIM_KERNEL(quiet) { write_all(arguments, GIVEN->value + (uint32_t)GIVEN->constant); }

// kernel: idle(ptr, u8[56]) unread=12:52
FOUNDRY_SIM_KERNEL(idle) { write_all(arguments, GIVEN->value); }

// kernel: reads(ptr, u8[56])
FOUNDRY_SIM_KERNEL(reads) { write_all(arguments, GIVEN->value + (uint32_t)(GIVEN->stack >> 8)); }

// kernel: low(ptr, u8[56])
FOUNDRY_SIM_KERNEL(low) { write_all(arguments, GIVEN->value + (uint8_t)GIVEN->stack); }

// kernel: flags(ptr, u8[56])
FOUNDRY_SIM_KERNEL(flags) { write_all(arguments, GIVEN->value + (GIVEN->padding != 0)); }

// kernel: breaks(ptr, u8[56])
FOUNDRY_SIM_KERNEL(breaks) {
    if (!GIVEN->padding) abort();
    write_all(arguments, GIVEN->value);
}
