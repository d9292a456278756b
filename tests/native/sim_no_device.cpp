// environment: FOUNDRY_SIM_DEVICES=0
// A machine with a driver and no device.
#include "sim_test.h"

int main() {
    EXPECT(CUDA_ERROR_NO_DEVICE, cuInit(0));
    int count = 0;
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
}
