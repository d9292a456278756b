// Before cuInit nothing works; a forked child of an initialised process has no driver.
#include "sim_test.h"

#include <sys/wait.h>
#include <unistd.h>

int main() {
    int count = 0, version = 0;
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    CHECK(cuDriverGetVersion(&version));
    REQUIRE(version == 13000);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    CHECK(cuInit(0));
    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&count));
    REQUIRE(count == 1);
    char name[64];
    CHECK(cuDeviceGetName(name, sizeof name, 0));
    REQUIRE(std::string(name) == "NVIDIA Simulated H200");
    int major = 0, minor = 0, multiprocessors = 0;
    CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    CHECK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    CHECK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    REQUIRE(major == 9 && minor == 0 && multiprocessors == 132);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof name, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&major, static_cast<CUdevice_attribute>(100000), 0));
    const char *text = nullptr;
    CHECK(cuGetErrorString(CUDA_ERROR_LOSSY_QUERY, &text));
    REQUIRE(std::strlen(text) > 5);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(static_cast<CUresult>(12345), &text));
    REQUIRE(text == nullptr);

    pid_t child = fork();
    if (child == 0)
        _exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED ? 0
                                                                                                                : 1);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(cuDeviceGetCount(&count));
}
