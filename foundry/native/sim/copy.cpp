// The calls that copy. Synchronous ones go through the legacy stream, or the thread's own in their _ptds twins.
#include "capture.h"
#include "regions.h"

namespace sim {
namespace {

CUDA_MEMCPY3D linear(CUmemorytype to, std::uint64_t destination, CUmemorytype from, std::uint64_t source,
                     std::size_t size) {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = from;
    copy.dstMemoryType = to;
    if (from == CU_MEMORYTYPE_HOST)
        copy.srcHost = reinterpret_cast<const void *>(source);
    else
        copy.srcDevice = source;
    if (to == CU_MEMORYTYPE_HOST)
        copy.dstHost = reinterpret_cast<void *>(destination);
    else
        copy.dstDevice = destination;
    copy.WidthInBytes = size;
    copy.Height = copy.Depth = 1;
    return copy;
}

// As the driver resolves a unified address: by what it knows of it.
CUmemorytype kind_of(std::uint64_t address) {
    return on_device(address) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

CUresult on_stream(CUstream handle, const CUDA_MEMCPY3D &copy) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(handle, &stream));
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
    return submit(*stream, MemcpyPayload{copy, stream->context});
}

CUresult at_once(const CUDA_MEMCPY3D &copy) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(nullptr, &stream));
    SIM_TRY(refuse_implicit(*stream));
    SIM_TRY(refuse_on_capturing(*stream));
    SIM_TRY(refuse_unsafe());
    return on_stream(nullptr, copy);
}

CUDA_MEMCPY3D deepen(const CUDA_MEMCPY2D &flat) {
    CUDA_MEMCPY3D copy = {};
    copy.srcXInBytes = flat.srcXInBytes;
    copy.srcY = flat.srcY;
    copy.srcMemoryType = flat.srcMemoryType;
    copy.srcHost = flat.srcHost;
    copy.srcDevice = flat.srcDevice;
    copy.srcArray = flat.srcArray;
    copy.srcPitch = flat.srcPitch;
    copy.dstXInBytes = flat.dstXInBytes;
    copy.dstY = flat.dstY;
    copy.dstMemoryType = flat.dstMemoryType;
    copy.dstHost = flat.dstHost;
    copy.dstDevice = flat.dstDevice;
    copy.dstArray = flat.dstArray;
    copy.dstPitch = flat.dstPitch;
    copy.WidthInBytes = flat.WidthInBytes;
    copy.Height = flat.Height;
    copy.Depth = 1;
    return copy;
}

std::uint64_t number(const void *pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}

CUDA_MEMCPY3D unified(CUdeviceptr destination, CUdeviceptr source, std::size_t size) {
    return linear(kind_of(destination), destination, kind_of(source), source, size);
}

constexpr CUmemorytype host = CU_MEMORYTYPE_HOST, device_memory = CU_MEMORYTYPE_DEVICE;

} // namespace
} // namespace sim

CUresult sim::cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    return at_once(unified(dst, src, ByteCount));
}

CUresult sim::cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
    return on_stream(hStream, unified(dst, src, ByteCount));
}

CUresult sim::cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext, size_t ByteCount) {
    return at_once(linear(device_memory, dstDevice, device_memory, srcDevice, ByteCount));
}

CUresult sim::cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext, size_t ByteCount,
                                CUstream hStream) {
    return on_stream(hStream, linear(device_memory, dstDevice, device_memory, srcDevice, ByteCount));
}

CUresult sim::cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    return at_once(linear(device_memory, dstDevice, host, number(srcHost), ByteCount));
}

CUresult sim::cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    return at_once(linear(host, number(dstHost), device_memory, srcDevice, ByteCount));
}

CUresult sim::cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    return at_once(linear(device_memory, dstDevice, device_memory, srcDevice, ByteCount));
}

CUresult sim::cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream) {
    return on_stream(hStream, linear(device_memory, dstDevice, host, number(srcHost), ByteCount));
}

CUresult sim::cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    return on_stream(hStream, linear(host, number(dstHost), device_memory, srcDevice, ByteCount));
}

CUresult sim::cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    return on_stream(hStream, linear(device_memory, dstDevice, device_memory, srcDevice, ByteCount));
}

CUresult sim::cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy) {
    return pCopy ? at_once(deepen(*pCopy)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy) {
    return pCopy ? at_once(deepen(*pCopy)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
    return pCopy ? on_stream(hStream, deepen(*pCopy)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy) {
    return pCopy ? at_once(*pCopy) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
    return pCopy ? on_stream(hStream, *pCopy) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation, unsigned int flags,
                                    CUstream hStream) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    SIM_TRY(refuse_implicit(*stream));
    SIM_TRY(refuse_on_capturing(*stream));
    Region *region = region_at(devPtr);
    bool managed = region && region->kind == RegionKind::managed && device_accessible(devPtr, count);
    return managed && flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
