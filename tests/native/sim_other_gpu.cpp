// environment: FOUNDRY_SIM_GPU=NVIDIA+Simulated+A100:8.0:108 FOUNDRY_SIM_DEVICES=3 CUDA_VISIBLE_DEVICES=2,0
// Another model, several devices, some of them visible.
#include "sim_test.h"

int main() {
    start(1);
    int count = 0, major = 0, minor = 0, multiprocessors = 0;
    CHECK(cuDeviceGetCount(&count));
    REQUIRE(count == 2);
    CHECK(cuDeviceComputeCapability(&major, &minor, 1));
    CHECK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    REQUIRE(major == 8 && minor == 0 && multiprocessors == 108);
    char name[64];
    CHECK(cuDeviceGetName(name, sizeof name, 0));
    REQUIRE(std::string(name) == "NVIDIA Simulated A100");
    CUuuid first, second;
    CHECK(cuDeviceGetUuid_v2(&first, 0));
    CHECK(cuDeviceGetUuid_v2(&second, 1));
    REQUIRE(std::memcmp(&first, &second, sizeof first) != 0);
    CUdevice current = -1;
    CHECK(cuCtxGetDevice(&current));
    REQUIRE(current == 1);
    CUdeviceptr address = 0;
    CHECK(cuMemAlloc_v2(&address, 100));
    int ordinal = -1;
    CHECK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
    REQUIRE(ordinal == 1);
}
