// What may not be called during a capture: by mode and thread; and what may.
#include "sim_test.h"

#include <thread>

static CUcontext context;
static CUstream stream;

template <class Call> static void unsafe(CUstreamCaptureMode mode, CUresult expected, Call call) {
    CHECK(cuStreamBeginCapture_v2(stream, mode));
    EXPECT(expected, call());
    CUgraph graph = nullptr;
    EXPECT(expected == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           cuStreamEndCapture(stream, &graph));
}

int main() {
    context = start();
    stream = new_stream();
    const CUresult no = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const auto global = CU_STREAM_CAPTURE_MODE_GLOBAL, local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
               relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr address = 0, kept = device_memory(64);
    auto allocate = [&] { return cuMemAlloc_v2(&address, 64); };
    auto allocate_elsewhere = [&] {
        CUresult result = CUDA_SUCCESS;
        std::thread([&] {
            CHECK(cuCtxSetCurrent(context));
            result = cuMemAlloc_v2(&address, 64);
        }).join();
        return result;
    };
    unsafe(global, no, allocate);
    unsafe(local, no, allocate);
    unsafe(relaxed, CUDA_SUCCESS, allocate);
    unsafe(global, no, allocate_elsewhere);
    unsafe(local, CUDA_SUCCESS, allocate_elsewhere);
    unsafe(relaxed, CUDA_SUCCESS, allocate_elsewhere);
    unsafe(global, no, [&] { return cuMemFree_v2(kept); });
    CHECK(cuMemsetD8_v2(kept, 0, 64));
    unsafe(relaxed, no, [] { return cuCtxSynchronize(); });
    unsafe(relaxed, no, [] { return cuStreamSynchronize(stream); });
    unsafe(relaxed, no, [] { return cuStreamQuery(stream); });
    std::vector<char> image = test_image();
    CUmodule module = nullptr;
    unsafe(global, no, [&] { return cuModuleLoadData(&module, image.data()); });
    CUevent event = new_event();
    unsafe(global, no, [&] { return cuEventQuery(event); });
    char byte = 0;
    unsafe(global, no, [&] { return cuMemcpyHtoD_v2(kept, &byte, 1); });
    unsafe(global, CUDA_SUCCESS, [&] {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        CHECK(cuThreadExchangeStreamCaptureMode(&mode));
        CUresult result = cuMemAlloc_v2(&address, 64);
        CHECK(cuThreadExchangeStreamCaptureMode(&mode));
        return result;
    });
    unsafe(global, CUDA_SUCCESS, [&] { // virtual memory calls are safe
        CUmemAllocationProp properties = {};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
        CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle = 0;
        CHECK(cuMemAddressReserve(&address, 2 << 20, 0, 0, 0));
        CHECK(cuMemCreate(&handle, 2 << 20, &properties, 0));
        CHECK(cuMemMap(address, 2 << 20, 0, handle, 0));
        return cuMemSetAccess(address, 2 << 20, &access, 1);
    });
}
