/* Device memory through the hook: places, errors, attributes. Addresses are said relative to the first allocation. */
#include "program.h"

static CUdeviceptr first;

static CUdeviceptr allocate(const char *name, size_t size) {
    CUdeviceptr address = 0;
    CUresult result = cuMemAlloc(&address, size);
    if (!first) first = address;
    SAY("%s %d %lld", name, result, (long long)(address - first));
    return address;
}

int main(void) {
    CUdeviceptr none = 5;
    SAY("before-init %d", cuMemAlloc(&none, 100));
    MUST(cuInit(0));
    SAY("no-context %d", cuMemAlloc(&none, 100));
    primary_context();

    CUdeviceptr a = allocate("a", 1000), b = allocate("b", 1), c = allocate("c", 3 << 20),
                d = allocate("d", (1 << 20) - 1);
    SAY("base %llx", first);
    SAY("zero %d", cuMemAlloc(&none, 0));
    SAY("null-out %d", cuMemAlloc(NULL, 100));
    SAY("null-free %d", cuMemFree(0));
    SAY("inner %d", cuMemFree(a + 8));
    SAY("foreign %d", cuMemFree(0x1234500000));
    SAY("free %d", cuMemFree(a));
    SAY("twice %d", cuMemFree(a));
    a = allocate("a-again", 512);
    MUST(cuMemFree(c));
    c = allocate("c-again", 2 << 20);
    CUdeviceptr e = allocate("e", 2 << 20);

    CUdeviceptr base;
    size_t size;
    MUST(cuMemGetAddressRange(&base, &size, d + 77));
    SAY("range %d %zu", base == d, size);
    MUST(cuMemGetAddressRange(NULL, &size, b));
    SAY("range-small %zu", size);
    SAY("range-gap %d", cuMemGetAddressRange(&base, &size, b + 100));
    CUcontext context, owner = NULL;
    MUST(cuCtxGetCurrent(&context));
    MUST(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, d + 9));
    unsigned long long number_b = 0, number_d = 0;
    MUST(cuPointerGetAttribute(&number_b, CU_POINTER_ATTRIBUTE_BUFFER_ID, b));
    MUST(cuPointerGetAttribute(&number_d, CU_POINTER_ATTRIBUTE_BUFFER_ID, d + 9));
    SAY("owner %d numbers %d", owner == context, number_b != number_d);
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    CUdeviceptr start = 0;
    size_t range = 0;
    int ordinal = -1;
    void *answers[] = {&start, &range, &ordinal};
    MUST(cuPointerGetAttributes(3, wanted, answers, e + 5));
    SAY("attributes %d %zu %d", start == e, range, ordinal);

    size_t pitch = 0;
    CUdeviceptr rows;
    MUST(cuMemAllocPitch(&rows, &pitch, 100, 3, 4));
    SAY("pitch %d", pitch >= 100 && pitch % 512 == 0);
    SAY("pitch-element %d", cuMemAllocPitch(&rows, &pitch, 100, 3, 3));
    CUipcMemHandle handle;
    SAY("ipc %d", cuIpcGetMemHandle(&handle, a));

    unsigned char *host = malloc(1 << 20), *back = malloc(1 << 20);
    for (int index = 0; index < 1 << 20; ++index) host[index] = (unsigned char)(index * 7);
    MUST(cuMemcpyHtoD(d, host, (1 << 20) - 1));
    MUST(cuMemcpyDtoH(back, d, (1 << 20) - 1));
    SAY("bytes %d", memcmp(host, back, (1 << 20) - 1) == 0);

    size_t free_before, free_after, total;
    MUST(cuMemGetInfo(&free_before, &total));
    CUdeviceptr large[4];
    for (int index = 0; index < 4; ++index) MUST(cuMemAlloc(&large[index], 64 << 20));
    for (int index = 0; index < 4; ++index) MUST(cuMemFree(large[index]));
    MUST(cuMemGetInfo(&free_after, &total));
    SAY("given-back %d", free_before == free_after);
    SAY("too-much %d", cuMemAlloc(&none, total * 4));
    void *pinned;
    MUST(cuMemHostAlloc(&pinned, 100, 0));
    MUST(cuMemFreeHost(pinned));
    CUdeviceptr managed;
    MUST(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemFree(managed));

    CUcontext other;
    CUdevice device;
    MUST(cuDeviceGet(&device, 0));
    MUST(cuCtxCreate(&other, NULL, 0, device));
    CUdeviceptr theirs;
    MUST(cuMemAlloc(&theirs, 5 << 20));
    MUST(cuCtxDestroy(other));
    MUST(cuCtxSetCurrent(context));
    SAY("died-with-context %d", cuMemFree(theirs));
    return 0;
}
