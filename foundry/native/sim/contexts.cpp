// Primary and created contexts, and each thread's stack of current ones.
#include "capture.h"
#include "devices.h"

#include <algorithm>

namespace sim {
namespace {

constexpr unsigned known_flags = 0xff;

std::shared_ptr<Context> make_context(int device, unsigned flags, bool primary, unsigned version) {
    auto context = std::make_shared<Context>();
    context->device = device;
    context->flags = flags;
    context->primary = primary;
    context->version = version;
    context->id = driver().next_context_id++;
    context->limits = {{CU_LIMIT_STACK_SIZE, 1024},
                       {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
                       {CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20},
                       {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
                       {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                       {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
                       {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
    driver().contexts.add(context);
    return context;
}

// A primary context lives as long as the driver, but is of use only while someone holds it.
bool alive(const Context &context) {
    return !context.primary || driver().devices[static_cast<std::size_t>(context.device)].primary_references > 0;
}

CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev, unsigned version) {
    if (!pctx || (flags & ~known_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!find_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
    SIM_TRY(refuse_unsafe());
    *pctx = make_context(dev, flags, false, version)->handle;
    thread().contexts.push_back(*pctx);
    return CUDA_SUCCESS;
}

CUresult known_context(CUcontext handle, Context **context) {
    *context = driver().contexts.find(handle);
    return *context && alive(**context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

} // namespace

CUresult current_context(Context **context) {
    std::vector<CUcontext> &stack = thread().contexts;
    if (stack.empty() || !stack.back()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = driver().contexts.find(stack.back());
    return *context && alive(**context) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void clear_context(Context &context) {
    clear_streams(context);
    clear_modules(context);
    clear_memory(context);
}

} // namespace sim

using sim::Context;
using sim::driver;

CUresult sim::cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    Device *device = find_device(dev);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary) device->primary = make_context(dev, device->primary_flags, true, 3020);
    if (device->primary_references++ == 0) device->primary->flags = device->primary_flags;
    *pctx = device->primary->handle;
    return CUDA_SUCCESS;
}

CUresult sim::cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    Device *device = find_device(dev);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_references == 0) clear_context(*device->primary);
    return CUDA_SUCCESS;
}

CUresult sim::cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    Device *device = find_device(dev);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary) clear_context(*device->primary);
    return CUDA_SUCCESS;
}

CUresult sim::cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
    Device *device = find_device(dev);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    *flags = device->primary_flags;
    *active = device->primary_references > 0;
    return CUDA_SUCCESS;
}

CUresult sim::cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
    Device *device = find_device(dev);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if ((flags & ~known_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    device->primary_flags = flags;
    if (device->primary) device->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    return create(pctx, flags, dev, 3020);
}

CUresult sim::cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *, int numParams, unsigned int flags, CUdevice dev) {
    return numParams ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(pctx, flags, dev, 3021);
}

CUresult sim::cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev) {
    if (ctxCreateParams && (ctxCreateParams->numExecAffinityParams || ctxCreateParams->cigParams))
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(pctx, flags, dev, 3021);
}

CUresult sim::cuCtxDestroy_v2(CUcontext ctx) {
    Context *context = driver().contexts.find(ctx);
    if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    SIM_TRY(refuse_unsafe());
    clear_context(*context);
    std::vector<CUcontext> &stack = thread().contexts;
    if (!stack.empty() && stack.back() == ctx) stack.pop_back();
    driver().contexts.remove(ctx);
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxSetCurrent(CUcontext ctx) {
    Context *context = nullptr;
    if (ctx) SIM_TRY(known_context(ctx, &context));
    std::vector<CUcontext> &stack = thread().contexts;
    if (!stack.empty()) stack.pop_back();
    if (ctx) stack.push_back(ctx);
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxGetCurrent(CUcontext *pctx) {
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUcontext> &stack = thread().contexts;
    *pctx = stack.empty() ? nullptr : stack.back();
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxPushCurrent_v2(CUcontext ctx) {
    Context *context = nullptr;
    SIM_TRY(known_context(ctx, &context));
    thread().contexts.push_back(ctx);
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxPopCurrent_v2(CUcontext *pctx) {
    std::vector<CUcontext> &stack = thread().contexts;
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx) *pctx = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxGetDevice(CUdevice *device) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx) {
    if (!ctx) return sim::cuCtxGetDevice(device);
    Context *context = nullptr;
    SIM_TRY(known_context(ctx, &context));
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxSynchronize() {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    return refuse_while_capturing(*context);
}

CUresult sim::cuCtxSynchronize_v2(CUcontext ctx) {
    if (!ctx) return sim::cuCtxSynchronize();
    Context *context = nullptr;
    SIM_TRY(known_context(ctx, &context));
    return refuse_while_capturing(*context);
}

// Work is done at once, so there is none in progress that the event would stand for.
CUresult sim::cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
    Context *context = nullptr;
    SIM_TRY(known_context(hCtx, &context));
    std::shared_ptr<Event> event;
    SIM_TRY(find_event(hEvent, &event));
    if (event->context != hCtx) return CUDA_ERROR_INVALID_HANDLE;
    return refuse_while_capturing(*context);
}

CUresult sim::cuCtxGetFlags(unsigned int *flags) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) {
    Context *context = nullptr;
    SIM_TRY(ctx ? known_context(ctx, &context) : current_context(&context));
    if (!ctxId) return CUDA_ERROR_INVALID_VALUE;
    *ctxId = context->id;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
    Context *context = nullptr;
    SIM_TRY(ctx ? known_context(ctx, &context) : current_context(&context));
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = context->version;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxGetLimit(size_t *pvalue, CUlimit limit) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    auto found = context->limits.find(limit);
    if (!pvalue || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (found == context->limits.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *pvalue = found->second;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxSetLimit(CUlimit limit, size_t value) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    auto found = context->limits.find(limit);
    if (found == context->limits.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    found->second = value;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxGetCacheConfig(CUfunc_cache *pconfig) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (!pconfig) return CUDA_ERROR_INVALID_VALUE;
    *pconfig = context->cache;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxSetCacheConfig(CUfunc_cache config) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    context->cache = config;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    if (leastPriority) *leastPriority = 0;
    if (greatestPriority) *greatestPriority = -5;
    return CUDA_SUCCESS;
}

CUresult sim::cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
    Context *context = nullptr, *peer = nullptr;
    SIM_TRY(current_context(&context));
    SIM_TRY(known_context(peerContext, &peer));
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (peer->device == context->device) return CUDA_ERROR_INVALID_DEVICE;
    return context->peers.insert(peerContext).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult sim::cuCtxDisablePeerAccess(CUcontext peerContext) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    return context->peers.erase(peerContext) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
