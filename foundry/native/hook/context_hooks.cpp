// cuInit, and contexts: where the hook arms, reserves address ranges, and tells the restore engine that there is a
// device to work on.
#include <mutex>
#include <new>
#include <vector>

#include "../restore/engine.h"
#include "../table/call.h"
#include "arena.h"
#include "beginning.h"
#include "captures.h"
#include "contexts.h"
#include "counters.h"
#include "early.h"
#include "images.h"
#include "library_files.h"
#include "mapping.h"
#include "moments.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

struct Known {
    CUcontext context;
    uint32_t device;
    bool primary;
    unsigned retained; // by the program, primary contexts
};

constexpr uint32_t most_devices = 64;

std::mutex mutex; // guards the two below
std::vector<Known> *known;
uint32_t created[most_devices];

bool remember(CUcontext context, uint32_t device, bool primary, uint32_t *ordinal) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!known) known = new std::vector<Known>;
    for (Known &entry : *known)
        if (entry.context == context) {
            ++entry.retained;
            return false;
        }
    known->push_back({context, device, primary, 1});
    *ordinal = primary || device >= most_devices ? 0 : created[device]++;
    return true;
}

void forget(CUcontext context) {
    std::lock_guard<std::mutex> lock(mutex);
    if (known) std::erase_if(*known, [context](const Known &entry) { return entry.context == context; });
}

// The primary context of a device; `last` is told whether one more release may end it.
CUcontext primary_of(CUdevice device, bool *last) {
    std::lock_guard<std::mutex> lock(mutex);
    *last = false;
    if (known)
        for (const Known &entry : *known)
            if (entry.primary && entry.device == static_cast<uint32_t>(device)) {
                *last = entry.retained <= 1;
                return entry.context;
            }
    return nullptr;
}

void released(CUcontext context) {
    std::lock_guard<std::mutex> lock(mutex);
    if (known)
        for (Known &entry : *known)
            if (entry.context == context && entry.retained) --entry.retained;
}

bool device_of(CUcontext context, uint32_t *device) {
    std::lock_guard<std::mutex> lock(mutex);
    if (known)
        for (const Known &entry : *known)
            if (entry.context == context) {
                *device = entry.device;
                return true;
            }
    return false;
}

bool primary_active(CUdevice device) {
    unsigned flags;
    int active = 1;
    return !real.cuDevicePrimaryCtxGetState ||
           real.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active;
}

void reserve(uint32_t device) {
    size_t arena_size = 0;
    const CUdeviceptr base = mode() == FOUNDRY_MODE_RESTORE ? restore::arena_base(device, &arena_size) : 0;
    arena_reserve(device, base, arena_size);
}

// Before the driver ends a context. Disarmed as well: a background thread may still be at work in it.
void going(CUcontext context) {
    if (context && mode() == FOUNDRY_MODE_RESTORE) restore::context_gone(context);
}

void gone(CUcontext context) {
    if (!context) return;
    forget(context);
    captures_context_gone(context);
    images_context_gone(context);
    arena_context_gone(context);
}

} // namespace

void context_ready(CUcontext context, CUdevice device, bool primary) {
    if (!armed() || !context) return;
    uint32_t ordinal, index = static_cast<uint32_t>(device);
    if (!remember(context, index, primary, &ordinal)) return;
    Inside inside;
    count(counters.contexts);
    moment_first(Moment::first_context);
    reserve(index);
    Frame(FOUNDRY_EVENT_CONTEXT).handle(context).u32(index).u32(primary).u32(ordinal).write();
    if (mode() == FOUNDRY_MODE_RESTORE && armed()) restore::context_ready(context, index, primary);
}

void context_before_program(CUcontext context, CUdevice device) {
    if (!armed() || !context) return;
    const auto index = static_cast<uint32_t>(device);
    reserve(index);
    if (armed()) restore::context_before_program(context, index);
}

void contexts_forget() {
    new (&mutex) std::mutex;
    known = nullptr;
    for (uint32_t &ordinal : created) ordinal = 0;
}

} // namespace foundry

using namespace foundry;

extern "C" {

CUresult cuInit(unsigned int Flags) {
    CUresult result;
    const bool asked = mode() != FOUNDRY_MODE_OFF;
    if (asked) moment_first(Moment::driver_begin);
    {
        Inside inside;
        early_wait_driver();
        result = DRIVER(cuInit, Flags);
    }
    if (result == CUDA_SUCCESS) {
        if (asked) moment_first(Moment::driver_end);
        thread_begins();
        if (arm()) {
            library_files_tell();
            beginning_tell();
        }
        if (mode() == FOUNDRY_MODE_RESTORE && armed()) restore::driver_ready();
    }
    return result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
    early_wait_end();
    CUresult result = DRIVER(cuDevicePrimaryCtxRetain, pctx, dev);
    if (result == CUDA_SUCCESS && pctx) {
        context_ready(*pctx, dev, true);
        early_let_go(dev);
    }
    return result;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
    CUresult result = DRIVER(cuDevicePrimaryCtxGetState, dev, flags, active);
    if (result == CUDA_SUCCESS && active && early_holds(dev)) *active = 0;
    return result;
}

// A capture says whether the context was to be another than an early start would make.
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
    CUresult result = DRIVER(cuDevicePrimaryCtxSetFlags_v2, dev, flags);
    if (result == CUDA_SUCCESS && flags && recording()) count_named("start_context_flags", 1);
    return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    bool last;
    CUcontext context = primary_of(dev, &last);
    if (last) going(context);
    CUresult result = DRIVER(cuDevicePrimaryCtxRelease_v2, dev);
    if (result != CUDA_SUCCESS || !context) return result;
    released(context);
    if (!primary_active(dev)) gone(context);
    return result;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    bool last;
    CUcontext context = primary_of(dev, &last);
    going(context);
    CUresult result = DRIVER(cuDevicePrimaryCtxReset_v2, dev);
    if (result == CUDA_SUCCESS) gone(context);
    return result;
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    CUresult result = DRIVER(cuCtxCreate_v2, pctx, flags, dev);
    if (result == CUDA_SUCCESS && pctx) context_ready(*pctx, dev, false);
    return result;
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                        CUdevice dev) {
    CUresult result = DRIVER(cuCtxCreate_v3, pctx, paramsArray, numParams, flags, dev);
    if (result == CUDA_SUCCESS && pctx) context_ready(*pctx, dev, false);
    return result;
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev) {
    CUresult result = DRIVER(cuCtxCreate_v4, pctx, ctxCreateParams, flags, dev);
    if (result == CUDA_SUCCESS && pctx) context_ready(*pctx, dev, false);
    return result;
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
    going(ctx);
    CUresult result = DRIVER(cuCtxDestroy_v2, ctx);
    if (result == CUDA_SUCCESS) gone(ctx);
    return result;
}

// The driver opens its own allocations to the peer; those of the hook are opened one by one.
CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
    CUresult result = DRIVER(cuCtxEnablePeerAccess, peerContext, Flags);
    CUdevice device;
    uint32_t peer;
    if (result != CUDA_SUCCESS || !armed() || !device_of(peerContext, &peer) ||
        real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return result;
    if (CUresult opened = map_peer(peer, static_cast<uint32_t>(device)); opened != CUDA_SUCCESS)
        finding_once("peer-refused", "memory of device %u could not be opened to device %d (CUresult %d)", peer, device,
                     opened);
    return result;
}

CUresult cuCtxSynchronize() {
    return DRIVER(cuCtxSynchronize);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
    return DRIVER(cuCtxSynchronize_v2, ctx);
}

} // extern "C"
