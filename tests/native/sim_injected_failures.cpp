// environment: FOUNDRY_SIM_FAIL=cuMemAlloc_v2:2:CUDA_ERROR_OUT_OF_MEMORY,cuGraphCreate:1,cuEventCreate:1:719
// The nth call of a named function fails, and does nothing; the others work.
#include "sim_test.h"

int main() {
    start();
    CUdeviceptr one = 0, two = 0;
    CHECK(cuMemAlloc_v2(&one, 64));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&two, 64));
    REQUIRE(two == 0);
    CHECK(cuMemAlloc_v2(&two, 64));
    CUgraph graph = nullptr;
    EXPECT(CUDA_ERROR_UNKNOWN, cuGraphCreate(&graph, 0));
    CHECK(cuGraphCreate(&graph, 0));
    CUevent event = nullptr;
    EXPECT(CUDA_ERROR_LAUNCH_FAILED, cuEventCreate(&event, 0));
    CHECK(cuEventCreate(&event, 0));
}
