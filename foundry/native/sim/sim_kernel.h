/* For kernels that run on the simulator. Plain C, needs nothing of CUDA.
 *
 * A kernel is called once a launch, not once a thread: it loops over the grid itself.
 *
 *   // kernel: vector_add(ptr, ptr, ptr, u32)
 *   FOUNDRY_SIM_KERNEL(vector_add) {
 *       const float *a = FOUNDRY_SIM_ARGUMENT(0, const float *);
 *       ...
 *   }
 */
#ifndef FOUNDRY_SIM_KERNEL_H
#define FOUNDRY_SIM_KERNEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct foundry_sim_launch {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* zeros when the launch sets none */
    uint32_t cooperative;
    uint32_t static_shared_bytes;
    uint32_t dynamic_shared_bytes;
    void *shared; /* static bytes, then dynamic bytes; holds arbitrary values at the start of a launch */
    uint32_t device;
    uint32_t reserved;
} foundry_sim_launch;

/* arguments[i] points at the i-th parameter as it was when the launch was made or the node was built. */
typedef void (*foundry_sim_kernel)(const void *const *arguments, const foundry_sim_launch *launch);

#ifdef __cplusplus
#define FOUNDRY_SIM_C extern "C"
#else
#define FOUNDRY_SIM_C
#endif

#define FOUNDRY_SIM_KERNEL(name)                                                                                       \
    FOUNDRY_SIM_C __attribute__((visibility("default"))) void name(const void *const *arguments,                       \
                                                                   const foundry_sim_launch *launch);                  \
    void name(const void *const *arguments __attribute__((unused)),                                                    \
              const foundry_sim_launch *launch __attribute__((unused)))

#define FOUNDRY_SIM_GLOBAL __attribute__((visibility("default")))

#define FOUNDRY_SIM_ARGUMENT(index, type) (*(type const *)arguments[index])

/* Threads of a launch along x over all blocks, the usual bound of a one-dimensional kernel. */
#define FOUNDRY_SIM_THREADS_X(launch) ((uint64_t)(launch)->grid[0] * (launch)->block[0])

#endif
