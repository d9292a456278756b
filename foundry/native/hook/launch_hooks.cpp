// Launches are counted and nothing else.
#include "../table/call.h"
#include "counters.h"

using namespace foundry;

extern "C" {

#define FOUNDRY_KERNEL_LAUNCH(symbol)                                                                                  \
    CUresult symbol(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,                 \
                    unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,                            \
                    unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra) {                \
        count(counters.kernel_launches);                                                                               \
        return DRIVER(symbol, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,        \
                      hStream, kernelParams, extra);                                                                   \
    }

#define FOUNDRY_KERNEL_LAUNCH_EX(symbol)                                                                               \
    CUresult symbol(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {                   \
        count(counters.kernel_launches);                                                                               \
        return DRIVER(symbol, config, f, kernelParams, extra);                                                         \
    }

#define FOUNDRY_COOPERATIVE_LAUNCH(symbol)                                                                             \
    CUresult symbol(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,                 \
                    unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,                            \
                    unsigned int sharedMemBytes, CUstream hStream, void **kernelParams) {                              \
        count(counters.kernel_launches);                                                                               \
        return DRIVER(symbol, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,        \
                      hStream, kernelParams);                                                                          \
    }

FOUNDRY_KERNEL_LAUNCH(cuLaunchKernel)
FOUNDRY_KERNEL_LAUNCH(cuLaunchKernel_ptsz)
FOUNDRY_KERNEL_LAUNCH_EX(cuLaunchKernelEx)
FOUNDRY_KERNEL_LAUNCH_EX(cuLaunchKernelEx_ptsz)
FOUNDRY_COOPERATIVE_LAUNCH(cuLaunchCooperativeKernel)
FOUNDRY_COOPERATIVE_LAUNCH(cuLaunchCooperativeKernel_ptsz)

} // extern "C"
