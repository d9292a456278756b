#include "work.h"

#include "backing.h"
#include "graph_memory.h"
#include "streams.h"

#include <algorithm>
#include <cstring>

namespace sim {
namespace {

constexpr unsigned largest_grid[] = {0x7fffffff, 65535, 65535};
constexpr unsigned largest_block[] = {1024, 1024, 64};
constexpr unsigned largest_block_threads = 1024;
constexpr unsigned portable_cluster = 8, largest_cluster = 16;

template <class... Cases> struct Overloaded : Cases... {
    using Cases::operator()...;
};
template <class... Cases> Overloaded(Cases...) -> Overloaded<Cases...>;

CUresult check_sizes(const KernelPayload &kernel) {
    unsigned long long threads = 1;
    for (int axis = 0; axis < 3; ++axis) {
        if (kernel.grid[axis] == 0 || kernel.grid[axis] > largest_grid[axis] || kernel.block[axis] == 0 ||
            kernel.block[axis] > largest_block[axis])
            return CUDA_ERROR_INVALID_VALUE;
        threads *= kernel.block[axis];
    }
    return threads > largest_block_threads ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult check_kernel(const KernelPayload &kernel) {
    SIM_TRY(check_sizes(kernel));
    const Function &function = *kernel.function;
    if (kernel.shared_bytes > static_cast<unsigned>(function.kernel->max_dynamic_shared(function.device)))
        return CUDA_ERROR_INVALID_VALUE;
    unsigned cluster[3];
    kernel.attributes.cluster(cluster);
    if (cluster[0] == 0) return CUDA_SUCCESS;
    bool wide = function.kernel->settings[function.device].non_portable_cluster != 0;
    if (cluster[0] * cluster[1] * cluster[2] > (wide ? largest_cluster : portable_cluster))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (int axis = 0; axis < 3; ++axis)
        if (kernel.grid[axis] % cluster[axis] != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return CUDA_SUCCESS;
}

void run_kernel(const KernelPayload &kernel) {
    const Function &function = *kernel.function;
    std::vector<const void *> arguments;
    for (const ParameterPlace &place : function.kernel->text.parameters)
        arguments.push_back(kernel.parameters.data() + place.offset);
    arguments.push_back(nullptr); // so that a kernel without parameters has an array, too
    std::size_t shared_bytes = function.kernel->text.static_shared + kernel.shared_bytes;
    std::vector<std::max_align_t> shared(shared_bytes / sizeof(std::max_align_t) + 1);
    spoil(shared.data(), shared_bytes);
    foundry_sim_launch launch = {};
    std::copy(kernel.grid, kernel.grid + 3, launch.grid);
    std::copy(kernel.block, kernel.block + 3, launch.block);
    kernel.attributes.cluster(launch.cluster);
    launch.cooperative = kernel.attributes.cooperative();
    launch.static_shared_bytes = function.kernel->text.static_shared;
    launch.dynamic_shared_bytes = kernel.shared_bytes;
    launch.shared = shared.data();
    launch.device = static_cast<std::uint32_t>(function.device);
    function.code(arguments.data(), &launch);
}

} // namespace

CUresult check_node(const Payload &payload) {
    return std::visit(
        Overloaded{[](const KernelPayload &kernel) { return check_sizes(kernel); },
                   [](const MemcpyPayload &copy) { return check_copy(copy.copy); },
                   [](const MemsetPayload &fill) { return check_fill(fill.fill); },
                   [](const HostPayload &host) { return host.call.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; },
                   [](const auto &) { return CUDA_SUCCESS; }},
        payload);
}

CUresult check_work(const Payload &payload) {
    if (auto *kernel = std::get_if<KernelPayload>(&payload)) return check_kernel(*kernel);
    return check_node(payload);
}

CUresult do_work(const Payload &payload) {
    return std::visit(Overloaded{[](const KernelPayload &kernel) {
                                     KernelPayload kept = kernel;
                                     run_kernel(kept);
                                     return CUDA_SUCCESS;
                                 },
                                 [](const MemcpyPayload &copy) {
                                     do_copy(copy.copy);
                                     return CUDA_SUCCESS;
                                 },
                                 [](const MemsetPayload &fill) {
                                     do_fill(fill.fill);
                                     return CUDA_SUCCESS;
                                 },
                                 [](const HostPayload &host) {
                                     CUDA_HOST_NODE_PARAMS call = host.call;
                                     Unlocked unlocked;
                                     call.fn(call.userData);
                                     return CUDA_SUCCESS;
                                 },
                                 [](const EventRecordPayload &record) {
                                     record.event->recorded = true;
                                     record.event->captured = false;
                                     record.event->capture.reset();
                                     record.event->tail.clear();
                                     record.event->when = std::chrono::steady_clock::now();
                                     return CUDA_SUCCESS;
                                 },
                                 [](const MemAllocPayload &allocation) { return start_memory(*allocation.memory); },
                                 [](const MemFreePayload &release) { return end_memory(release.address); },
                                 [](const auto &) { return CUDA_SUCCESS; }},
                      payload);
}

CUresult read_parameters(const Function &function, void **pointers, void **extra, KernelPayload *payload) {
    const KernelText &text = function.kernel->text;
    payload->parameters.assign(text.parameter_bytes(), 0);
    payload->through_extra = false;
    if (pointers && extra) return CUDA_ERROR_INVALID_VALUE;
    if (extra) {
        const void *buffer = nullptr;
        std::size_t size = 0;
        for (void **word = extra; *word != CU_LAUNCH_PARAM_END; word += 2) {
            if (word[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
                buffer = word[1];
            else if (word[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
                std::memcpy(&size, word[1], sizeof size);
            else
                return CUDA_ERROR_INVALID_VALUE;
        }
        if ((!buffer && size) || size < text.parameter_bytes()) return CUDA_ERROR_INVALID_VALUE;
        if (!payload->parameters.empty()) std::memcpy(payload->parameters.data(), buffer, payload->parameters.size());
        payload->through_extra = true;
        return CUDA_SUCCESS;
    }
    if (!text.parameters.empty() && !pointers) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < text.parameters.size(); ++index) {
        if (!pointers[index]) return CUDA_ERROR_INVALID_VALUE;
        std::memcpy(payload->parameters.data() + text.parameters[index].offset, pointers[index],
                    text.parameters[index].size);
    }
    return CUDA_SUCCESS;
}

} // namespace sim
