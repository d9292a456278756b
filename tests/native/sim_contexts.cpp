// Primary and created contexts; the stack of each thread; calls without a current one.
#include "sim_test.h"

#include <thread>

int main() {
    CHECK(cuInit(0));
    CUdeviceptr address = 0;
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&address, 64));
    unsigned flags = 0;
    int active = 1;
    CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    REQUIRE(!active);
    CUcontext primary = nullptr, again = nullptr, current = nullptr;
    CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
    CHECK(cuDevicePrimaryCtxRetain(&again, 0));
    REQUIRE(primary == again);
    CHECK(cuCtxGetCurrent(&current));
    REQUIRE(!current);
    CHECK(cuCtxSetCurrent(primary));
    CHECK(cuMemAlloc_v2(&address, 64));
    std::thread([&] {
        CUdeviceptr other = 0;
        EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&other, 64));
        CHECK(cuCtxSetCurrent(primary));
        CHECK(cuMemAlloc_v2(&other, 64));
    }).join();

    CUcontext created = nullptr, popped = nullptr;
    CHECK(cuCtxCreate_v2(&created, 0, 0));
    CHECK(cuCtxGetCurrent(&current));
    REQUIRE(current == created && created != primary);
    CUdeviceptr inside = 0;
    CHECK(cuMemAlloc_v2(&inside, 64));
    CUcontext owner = nullptr;
    CHECK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, inside));
    REQUIRE(owner == created);
    CHECK(cuCtxPopCurrent_v2(&popped));
    REQUIRE(popped == created);
    CHECK(cuCtxPushCurrent_v2(created));
    CHECK(cuCtxDestroy_v2(created));
    CHECK(cuCtxGetCurrent(&current));
    REQUIRE(current == primary);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(inside));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(created));

    CUstream stream = new_stream();
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(cuMemsetD8_v2(address, 0, 64));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&inside, 64));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    CHECK(cuDevicePrimaryCtxRetain(&again, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(address, 0, 64));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
}
