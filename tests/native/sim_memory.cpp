// Allocations of a context: sizes, addresses, frees, ranges, attributes.
#include "sim_test.h"

int main() {
    start();
    CUdeviceptr small = 0, next = 0, large = 0, pitched = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&small, 0));
    CHECK(cuMemAlloc_v2(&small, 100));
    CHECK(cuMemAlloc_v2(&next, 100));
    CHECK(cuMemAlloc_v2(&large, 5 << 20));
    REQUIRE(small % 512 == 0 && next % 512 == 0 && small != next && large % 512 == 0);
    CUdeviceptr base = 0;
    std::size_t size = 0, pitch = 0;
    CHECK(cuMemGetAddressRange_v2(&base, &size, small + 50));
    REQUIRE(base == small && size == 100);
    EXPECT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &size, small + 100));
    CHECK(cuMemAllocPitch_v2(&pitched, &pitch, 100, 10, 4));
    REQUIRE(pitch >= 100 && pitch % 512 == 0);
    CHECK(cuMemsetD8_v2(pitched, 1, pitch * 10));
    unsigned first = word_at(small);
    REQUIRE(first != 0); // new memory is not zero

    unsigned type = 0;
    CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, large + 7));
    REQUIRE(type == CU_MEMORYTYPE_DEVICE);
    int host = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&host)));
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    int ordinal = 0;
    void *answers[] = {&type, &ordinal, &size};
    CHECK(cuPointerGetAttributes(3, asked, answers, reinterpret_cast<CUdeviceptr>(&host)));
    REQUIRE(type == 0 && ordinal == -2 && size == 0);
    CHECK(cuPointerGetAttributes(3, asked, answers, large));
    REQUIRE(type == CU_MEMORYTYPE_DEVICE && ordinal == 0 && size == 5 << 20);

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(large + 512));
    CHECK(cuMemFree_v2(large));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(large));
    CHECK(cuMemFree_v2(0));
    CHECK(cuMemFree_v2(small));
    CHECK(cuMemFree_v2(next));

    void *pinned = nullptr;
    CHECK(cuMemAllocHost_v2(&pinned, 4096));
    CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(pinned)));
    REQUIRE(type == CU_MEMORYTYPE_HOST);
    CUdeviceptr mapped = 0;
    CHECK(cuMemHostGetDevicePointer_v2(&mapped, pinned, 0));
    REQUIRE(mapped == reinterpret_cast<CUdeviceptr>(pinned));
    CHECK(cuMemFreeHost(pinned));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
    std::vector<char> own(8192);
    CHECK(cuMemHostRegister_v2(own.data(), own.size(), 0));
    EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(own.data(), 100, 0));
    CHECK(cuMemHostUnregister(own.data()));
    EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own.data()));
    CUdeviceptr managed = 0;
    CHECK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    unsigned is_managed = 0;
    CHECK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
    REQUIRE(is_managed == 1);
    *reinterpret_cast<int *>(managed) = 5;
    REQUIRE(word_at(managed) == 5);
    CHECK(cuMemFree_v2(managed));
}
