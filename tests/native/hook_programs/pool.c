/* Stream-ordered memory: reuse on the same stream, none across streams, nothing lost. */
#include "program.h"

static CUdeviceptr allocate(const char *name, size_t size, CUstream stream) {
    CUdeviceptr address = 0;
    CUresult result = cuMemAllocAsync(&address, size, stream);
    SAY("%s %d %llx", name, result, address);
    return address;
}

int main(void) {
    primary_context();
    CUstream one, two;
    MUST(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    CUdeviceptr a = allocate("a", 3 << 20, one);
    MUST(cuMemFreeAsync(a, one));
    SAY("twice %d", cuMemFreeAsync(a, one));
    SAY("sync-free-of-idle %d", cuMemFree(a));
    CUdeviceptr b = allocate("other-stream", 3 << 20, two);
    CUdeviceptr c = allocate("same-stream", 3 << 20, one);
    SAY("reused %d", c == a);
    MUST(cuMemFreeAsync(b, two));
    MUST(cuStreamDestroy(two));
    CUdeviceptr d = allocate("after-destroy", 3 << 20, one);
    SAY("taken-over %d", d == b);
    MUST(cuMemFreeAsync(d, one));

    CUgraph graph;
    MUST(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUdeviceptr e = 0;
    CUresult result = cuMemAllocAsync(&e, 100, one);
    SAY("captured %d %d", result, e >= 0x400000000000 && e < 0x500000000000);
    if (result == CUDA_SUCCESS) MUST(cuMemFreeAsync(e, one));
    MUST(cuStreamEndCapture(one, &graph));

    size_t free_bytes, total;
    MUST(cuMemGetInfo(&free_bytes, &total));
    CUdeviceptr whole;
    result = cuMemAlloc(&whole, free_bytes + (2 << 20));
    SAY("trimmed-for %d", result);
    if (result == CUDA_SUCCESS) MUST(cuMemFree(whole));
    CUmemoryPool pool;
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    CUdeviceptr from_pool;
    MUST(cuMemAllocFromPoolAsync(&from_pool, 100, pool, one));
    MUST(cuMemFreeAsync(from_pool, one));
    MUST(cuMemFreeAsync(c, one));
    return 0;
}
