// Kernel launches and host functions on streams.
#include "capture.h"

#include <algorithm>

namespace sim {
namespace {

CUlaunchConfig configuration(const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared_bytes,
                             CUstream stream) {
    CUlaunchConfig config = {};
    config.gridDimX = grid[0];
    config.gridDimY = grid[1];
    config.gridDimZ = grid[2];
    config.blockDimX = block[0];
    config.blockDimY = block[1];
    config.blockDimZ = block[2];
    config.sharedMemBytes = shared_bytes;
    config.hStream = stream;
    return config;
}

CUresult launch(CUfunction handle, const CUlaunchConfig &config, void **pointers, void **extra) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    std::shared_ptr<Function> function;
    SIM_TRY(resolve_function(handle, *context, &function));
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(config.hStream, &stream));
    KernelPayload payload;
    payload.function = function;
    const unsigned grid[] = {config.gridDimX, config.gridDimY, config.gridDimZ};
    const unsigned block[] = {config.blockDimX, config.blockDimY, config.blockDimZ};
    std::copy(grid, grid + 3, payload.grid);
    std::copy(block, block + 3, payload.block);
    payload.shared_bytes = config.sharedMemBytes;
    SIM_TRY(read_parameters(*function, pointers, extra, &payload));
    CUlaunchAttributeValue priority = {};
    priority.priority = stream->priority;
    SIM_TRY(payload.attributes.set(CU_LAUNCH_ATTRIBUTE_PRIORITY, priority));
    bool programmatic = false;
    std::shared_ptr<Event> programmatic_event, completion_event;
    if (config.numAttrs && !config.attrs) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned index = 0; index < config.numAttrs; ++index) {
        const CUlaunchAttribute &attribute = config.attrs[index];
        switch (static_cast<int>(attribute.id)) {
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
            SIM_TRY(find_event(attribute.value.programmaticEvent.event, &programmatic_event));
            break;
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
            SIM_TRY(find_event(attribute.value.launchCompletionEvent.event, &completion_event));
            break;
        default:
            SIM_TRY(payload.attributes.set(attribute.id, attribute.value));
            break;
        }
    }
    SIM_TRY(check_work(payload)); // before the capture sees it: a bad launch leaves a capture whole
    function->loaded = true;
    Node *node = nullptr;
    SIM_TRY(submit_with(*stream, std::move(payload), programmatic, &node));
    auto record = [&](const std::shared_ptr<Event> &event, unsigned char port) {
        if (!event) return;
        if (!node) {
            do_work(EventRecordPayload{event});
            return;
        }
        event->capture = stream->capture;
        event->captured = true;
        event->tail = {Link{node, {port, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}}}};
    };
    record(programmatic_event, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    record(completion_event, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
    return CUDA_SUCCESS;
}

} // namespace
} // namespace sim

CUresult sim::cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                             unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra) {
    CUlaunchConfig config =
        configuration({gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, hStream);
    return launch(f, config, kernelParams, extra);
}

CUresult sim::cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
    return config ? launch(f, *config, kernelParams, extra) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                        void **kernelParams) {
    CUlaunchAttribute cooperative = {};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    CUlaunchConfig config =
        configuration({gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, hStream);
    config.attrs = &cooperative;
    config.numAttrs = 1;
    return launch(f, config, kernelParams, nullptr);
}

CUresult sim::cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) {
    Stream *stream = nullptr;
    SIM_TRY(resolve_stream(hStream, &stream));
    if (!fn) return CUDA_ERROR_INVALID_VALUE;
    return submit(*stream, HostPayload{{fn, userData}});
}
