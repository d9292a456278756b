// environment: FOUNDRY_SIM_MASK=cuLibraryLoadData,cuGraphLaunch
// Masked functions are absent, their per-thread twins too.
#include "sim_test.h"

int main() {
    start();
    void *address = nullptr;
    EXPECT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuLibraryLoadData", &address, 13000, 0, nullptr));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuGraphLaunch", &address, 13000,
                                                     CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
    CHECK(cuGetProcAddress_v2("cuModuleLoadData", &address, 13000, 0, nullptr));
    CUlibrary library = nullptr;
    EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryLoadData(&library, "x", nullptr, nullptr, 0, nullptr, nullptr, 0));
}
