/* An engine that is linked with the driver and opened with RTLD_DEEPBIND. */
#include <cuda.h>

int engine_works(void) {
    CUdeviceptr address;
    if (cuMemAlloc(&address, 100) != CUDA_SUCCESS) return 1;
    return cuMemFree(address) != CUDA_SUCCESS;
}
