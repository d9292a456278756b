// Streams, and what their handles name. Work is done as it is submitted, so a stream has always finished.
#include "streams.h"

#include <algorithm>

namespace sim {

StreamRegistry &stream_registry() {
    static auto *registry = new StreamRegistry;
    return *registry;
}

std::shared_ptr<Stream> make_stream(const Context &context, unsigned flags, int priority) {
    static unsigned long long next_id = 1;
    auto stream = std::make_shared<Stream>();
    stream->context = context.handle;
    stream->device = context.device;
    stream->flags = flags;
    stream->priority = std::clamp(priority, greatest_priority, least_priority);
    stream->id = next_id++;
    stream->attributes[CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY].syncPolicy = CU_SYNC_POLICY_AUTO;
    stream->attributes[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP].memSyncDomainMap = {0, 1};
    return stream;
}

CUresult resolve_stream(CUstream handle, Stream **stream) {
    bool own = handle == CU_STREAM_PER_THREAD || (!handle && Entry::per_thread_default());
    if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        *stream = stream_registry().streams.find(handle);
        return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    std::shared_ptr<Stream> &slot = own ? context->per_thread[thread().ordinal] : context->legacy;
    if (!slot) {
        slot = make_stream(*context, 0, 0);
        slot->legacy = !own;
    }
    *stream = slot.get();
    return CUDA_SUCCESS;
}

} // namespace sim
