// The calls that fill.
#include "capture.h"

namespace sim {
namespace {

CUresult on_stream(CUstream handle, CUdeviceptr destination, std::size_t pitch, unsigned value, unsigned element,
                   std::size_t width, std::size_t height) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(handle, &stream));
    CUDA_MEMSET_NODE_PARAMS fill = {destination, pitch, value, element, width, height};
    SIM_TRY(check_fill(fill));
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    return submit(*stream, MemsetPayload{fill, stream->context});
}

CUresult at_once(CUdeviceptr destination, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
                 std::size_t height) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(nullptr, &stream));
    SIM_TRY(refuse_implicit(*stream));
    SIM_TRY(refuse_on_capturing(*stream));
    SIM_TRY(refuse_unsafe());
    return on_stream(nullptr, destination, pitch, value, element, width, height);
}

} // namespace
} // namespace sim

CUresult sim::cuMemsetD8_v2(CUdeviceptr dst, unsigned char uc, size_t N) {
    return at_once(dst, 0, uc, 1, N, 1);
}
CUresult sim::cuMemsetD16_v2(CUdeviceptr dst, unsigned short us, size_t N) {
    return at_once(dst, 0, us, 2, N, 1);
}
CUresult sim::cuMemsetD32_v2(CUdeviceptr dst, unsigned int ui, size_t N) {
    return at_once(dst, 0, ui, 4, N, 1);
}

CUresult sim::cuMemsetD2D8_v2(CUdeviceptr dst, size_t dstPitch, unsigned char uc, size_t Width, size_t Height) {
    return at_once(dst, dstPitch, uc, 1, Width, Height);
}

CUresult sim::cuMemsetD2D16_v2(CUdeviceptr dst, size_t dstPitch, unsigned short us, size_t Width, size_t Height) {
    return at_once(dst, dstPitch, us, 2, Width, Height);
}

CUresult sim::cuMemsetD2D32_v2(CUdeviceptr dst, size_t dstPitch, unsigned int ui, size_t Width, size_t Height) {
    return at_once(dst, dstPitch, ui, 4, Width, Height);
}

CUresult sim::cuMemsetD8Async(CUdeviceptr dst, unsigned char uc, size_t N, CUstream hStream) {
    return on_stream(hStream, dst, 0, uc, 1, N, 1);
}

CUresult sim::cuMemsetD16Async(CUdeviceptr dst, unsigned short us, size_t N, CUstream hStream) {
    return on_stream(hStream, dst, 0, us, 2, N, 1);
}

CUresult sim::cuMemsetD32Async(CUdeviceptr dst, unsigned int ui, size_t N, CUstream hStream) {
    return on_stream(hStream, dst, 0, ui, 4, N, 1);
}

CUresult sim::cuMemsetD2D8Async(CUdeviceptr dst, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                                CUstream hStream) {
    return on_stream(hStream, dst, dstPitch, uc, 1, Width, Height);
}

CUresult sim::cuMemsetD2D16Async(CUdeviceptr dst, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                                 CUstream hStream) {
    return on_stream(hStream, dst, dstPitch, us, 2, Width, Height);
}

CUresult sim::cuMemsetD2D32Async(CUdeviceptr dst, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
                                 CUstream hStream) {
    return on_stream(hStream, dst, dstPitch, ui, 4, Width, Height);
}
