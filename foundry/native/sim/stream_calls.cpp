// The calls of streams.
#include "capture.h"

#include <algorithm>
#include <cstring>

namespace sim {
namespace {

CUresult create(CUstream *handle, unsigned flags, int priority) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!handle || (flags & ~CU_STREAM_NON_BLOCKING) != 0) return CUDA_ERROR_INVALID_VALUE;
    *handle = stream_registry().streams.add(make_stream(*context, flags, priority));
    return CUDA_SUCCESS;
}

bool stream_attribute(int id) {
    return id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW || id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
           id == CU_LAUNCH_ATTRIBUTE_PRIORITY || id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
           id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

} // namespace

void clear_streams(Context &context) {
    auto mine = [&](auto &object) { return object.context == context.handle; };
    for (auto &[unused, stream] : stream_registry().streams)
        if (mine(*stream)) leave_capture(*stream);
    stream_registry().streams.remove_if(mine);
    stream_registry().events.remove_if(mine);
    for (auto &[unused, stream] : context.per_thread) leave_capture(*stream);
    context.per_thread.clear();
    context.legacy.reset();
}

} // namespace sim

using sim::Stream;
using sim::stream_registry;

CUresult sim::cuStreamCreate(CUstream *phStream, unsigned int Flags) {
    return create(phStream, Flags, 0);
}

CUresult sim::cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority) {
    return create(phStream, flags, priority);
}

CUresult sim::cuStreamDestroy_v2(CUstream hStream) {
    Stream *stream = stream_registry().streams.find(hStream);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    leave_capture(*stream);
    stream_registry().streams.remove(hStream);
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamQuery(CUstream hStream) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    SIM_TRY(refuse_implicit(*stream));
    return refuse_on_capturing(*stream);
}

CUresult sim::cuStreamSynchronize(CUstream hStream) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    SIM_TRY(refuse_implicit(*stream));
    return refuse_on_capturing(*stream);
}

CUresult sim::cuStreamGetPriority(CUstream hStream, int *priority) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (!priority) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamGetFlags(CUstream hStream, unsigned int *flags) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamGetId(CUstream hStream, unsigned long long *streamId) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (!streamId) return CUDA_ERROR_INVALID_VALUE;
    *streamId = stream->id;
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamGetCtx(CUstream hStream, CUcontext *pctx) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    *pctx = stream->context;
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx) {
    if (pGreenCtx) *pGreenCtx = nullptr;
    return sim::cuStreamGetCtx(hStream, pCtx);
}

CUresult sim::cuStreamGetDevice(CUstream hStream, CUdevice *device) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = stream->device;
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (!callback || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    SIM_TRY(refuse_implicit(*stream));
    SIM_TRY(refuse_on_capturing(*stream));
    Unlocked unlocked;
    callback(hStream, CUDA_SUCCESS, userData);
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (!value || !stream_attribute(attr)) return CUDA_ERROR_INVALID_VALUE;
    *value = stream->attributes[attr];
    if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) value->priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *param) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (!param || !stream_attribute(attr)) return CUDA_ERROR_INVALID_VALUE;
    stream->attributes[attr] = *param;
    if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        stream->priority = std::clamp(param->priority, greatest_priority, least_priority);
    return CUDA_SUCCESS;
}

CUresult sim::cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream) {
    Stream *destination = nullptr, *source = nullptr;
    SIM_TRY(resolve_stream(dstStream, &destination));
    SIM_TRY(resolve_stream(srcStream, &source));
    std::memcpy(destination->attributes, source->attributes, sizeof destination->attributes);
    return CUDA_SUCCESS;
}
