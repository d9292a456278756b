// Function attributes: defaults, setting with limits, and what a launch holds them against.
#include "sim_test.h"

static int attribute(CUkernel kernel, CUfunction_attribute id) {
    int value = -2;
    CHECK(cuKernelGetAttribute(&value, id, kernel, 0));
    return value;
}

int main() {
    start();
    TestLibrary library;
    CUkernel kernel = library.kernel("shared_sum");
    CUfunction function = library.function("shared_sum");
    const auto dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    REQUIRE(attribute(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 256);
    REQUIRE(attribute(kernel, dynamic) == 48 * 1024 - 256);
    REQUIRE(attribute(kernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) == -1);
    REQUIRE(attribute(kernel, CU_FUNC_ATTRIBUTE_BINARY_VERSION) == 90);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuKernelSetAttribute(dynamic, 227 * 1024 - 255, kernel, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 10, kernel, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
    CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
    REQUIRE(attribute(kernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) == 50);

    CUdeviceptr out = device_memory(4), in = device_memory(16);
    CHECK(cuMemsetD32_v2(in, 5, 4));
    unsigned count = 4;
    void *arguments[] = {&out, &in, &count};
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 100 * 1024, nullptr, arguments, nullptr));
    CHECK(cuKernelSetAttribute(dynamic, 100 * 1024, kernel, 0));
    CHECK(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 100 * 1024, nullptr, arguments, nullptr));
    REQUIRE(word_at(out) == 2000020);

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 1024, 2, 1, 0, nullptr, arguments, nullptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));

    CUlaunchAttribute cluster = {};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {4, 1, 1};
    CUlaunchConfig config = {};
    config.gridDimX = 6;
    config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.attrs = &cluster;
    config.numAttrs = 1;
    EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, function, arguments, nullptr));
    config.gridDimX = 8;
    CHECK(cuLaunchKernelEx(&config, function, arguments, nullptr));
    cluster.value.clusterDim = {16, 1, 1};
    config.gridDimX = 16;
    EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, function, arguments, nullptr));
    CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    CHECK(cuLaunchKernelEx(&config, function, arguments, nullptr));
    CHECK(cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments));
}
