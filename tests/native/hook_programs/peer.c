/* Two devices: memory of one is used from the other after its context was opened to it. Needs FOUNDRY_SIM_DEVICES=2. */
#include "program.h"

int main(void) {
    CUcontext first = primary_context(), second;
    CUdevice device;
    MUST(cuDeviceGet(&device, 1));
    MUST(cuDevicePrimaryCtxRetain(&second, device));
    CUdeviceptr before, after, there;
    MUST(cuCtxSetCurrent(second));
    MUST(cuMemAlloc(&before, 4096));
    MUST(cuCtxSetCurrent(first));
    MUST(cuMemAlloc(&there, 4096));
    CUresult opened = cuCtxEnablePeerAccess(second, 0);
    SAY("opened %d", opened);
    MUST(cuCtxSetCurrent(second));
    MUST(cuMemAlloc(&after, 4 << 20));
    MUST(cuCtxSetCurrent(first));
    uint32_t value = 5, got = 0;
    MUST(cuMemcpyHtoD(before, &value, 4));
    MUST(cuMemcpyDtoD(after, before, 4));
    MUST(cuMemcpyDtoH(&got, after, 4));
    SAY("got %u", got);
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    location.id = 0;
    unsigned long long flags = 0;
    CUresult asked = cuMemGetAccess(&flags, &location, before);
    SAY("before %d %llu", asked, flags);
    asked = cuMemGetAccess(&flags, &location, after);
    SAY("after %d %llu", asked, flags);
    SAY("apart %llx %llx", there, before);
    return 0;
}
