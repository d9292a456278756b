// environment: FOUNDRY_SIM_MEMORY=67108864
// What may be taken of a device ends at the limit, however it is taken; what is given back can be taken again.
#include "sim_test.h"

int main() {
    start();
    std::size_t free_bytes = 0, total = 0, nominal = 0;
    CHECK(cuMemGetInfo_v2(&free_bytes, &total));
    CHECK(cuDeviceTotalMem_v2(&nominal, 0));
    REQUIRE(free_bytes == 64u << 20 && total == nominal && nominal == 139ull << 30);
    CUdeviceptr block = 0, other = 0;
    CHECK(cuMemAlloc_v2(&block, 40 << 20));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&other, 40 << 20));
    CHECK(cuMemGetInfo_v2(&free_bytes, &total));
    REQUIRE(free_bytes == 24u << 20);
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CUmemGenericAllocationHandle handle = 0;
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, 26 << 20, &properties, 0));
    CHECK(cuMemCreate(&handle, 24 << 20, &properties, 0));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&other, 100));
    CHECK(cuMemRelease(handle));
    CHECK(cuMemFree_v2(block));
    CHECK(cuMemAlloc_v2(&other, 60 << 20));
}
