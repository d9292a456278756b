// Stream-ordered allocation from the default pool and from pools of the program's.
#include "sim_test.h"

int main() {
    start();
    CUstream stream = new_stream();
    CUdeviceptr address = 0;
    CHECK(cuMemAllocAsync(&address, 1000, stream));
    CUmemoryPool pool = nullptr, default_pool = nullptr, found = nullptr;
    CHECK(cuDeviceGetDefaultMemPool(&default_pool, 0));
    CHECK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
    REQUIRE(found == default_pool);
    cuuint64_t used = 0;
    CHECK(cuMemPoolGetAttribute(default_pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    REQUIRE(used == 1000);
    CHECK(cuMemFreeAsync(address, stream));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(address, stream));
    CHECK(cuMemPoolGetAttribute(default_pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    REQUIRE(used == 0);

    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CHECK(cuMemPoolCreate(&pool, &properties));
    CHECK(cuMemAllocFromPoolAsync(&address, 4096, pool, stream));
    CHECK(cuMemFree_v2(address));
    CHECK(cuDeviceSetMemPool(0, pool));
    CHECK(cuMemAllocAsync(&address, 64, stream));
    CHECK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
    REQUIRE(found == pool);
    CHECK(cuMemPoolDestroy(pool));
    CHECK(cuMemFreeAsync(address, stream));
    CHECK(cuDeviceGetMemPool(&found, 0));
    REQUIRE(found == default_pool);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(default_pool));
}
