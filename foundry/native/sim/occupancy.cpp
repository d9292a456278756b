// Occupancy of the simulated multiprocessor: 2048 threads, 32 blocks, 228 KiB of shared memory.
#include "kernels.h"

#include <algorithm>

namespace sim {
namespace {

constexpr int threads_each = 2048, blocks_each = 32;
constexpr std::size_t shared_each = 228 * 1024, shared_reserved = 1024, largest_shared = 227 * 1024;
constexpr int portable_cluster = 8, largest_cluster = 16;

int blocks_that_fit(const Function &function, int block_size, std::size_t dynamic_shared) {
    std::size_t shared = function.kernel->text.static_shared + dynamic_shared;
    if (block_size <= 0 || block_size > 1024 || shared > largest_shared) return 0;
    int by_threads = threads_each / ((block_size + 31) / 32 * 32);
    int by_shared = static_cast<int>(shared_each / (shared + shared_reserved));
    return std::min({blocks_each, by_threads, by_shared});
}

CUresult function_here(CUfunction handle, std::shared_ptr<Function> *function) {
    Context *context = nullptr;
    SIM_TRY(current_context(&context));
    return resolve_function(handle, *context, function);
}

} // namespace
} // namespace sim

CUresult sim::cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                          size_t dynamicSMemSize) {
    return sim::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult sim::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                                   size_t dynamicSMemSize, unsigned int) {
    std::shared_ptr<Function> function;
    SIM_TRY(function_here(func, &function));
    if (!numBlocks || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
    *numBlocks = blocks_that_fit(*function, blockSize, dynamicSMemSize);
    return CUDA_SUCCESS;
}

CUresult sim::cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                               CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                               int blockSizeLimit) {
    std::shared_ptr<Function> function;
    SIM_TRY(function_here(func, &function));
    if (!minGridSize || !blockSize) return CUDA_ERROR_INVALID_VALUE;
    int limit = blockSizeLimit > 0 ? std::min(blockSizeLimit, 1024) : 1024;
    int best_threads = 0;
    for (int size = limit / 32 * 32; size >= 32; size -= 32) {
        std::size_t shared = dynamicSMemSize;
        if (blockSizeToDynamicSMemSize) {
            Unlocked unlocked;
            shared = blockSizeToDynamicSMemSize(size);
        }
        int blocks = blocks_that_fit(*function, size, shared);
        if (blocks * size > best_threads) {
            best_threads = blocks * size;
            *blockSize = size;
            *minGridSize = blocks * levers().multiprocessors;
        }
    }
    return best_threads ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim::cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config) {
    std::shared_ptr<Function> function;
    SIM_TRY(function_here(func, &function));
    if (!numClusters || !config) return CUDA_ERROR_INVALID_VALUE;
    unsigned cluster = 1;
    for (unsigned index = 0; index < config->numAttrs; ++index)
        if (config->attrs[index].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            const auto &shape = config->attrs[index].value.clusterDim;
            cluster = std::max(1u, shape.x * shape.y * shape.z);
        }
    int threads = static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ);
    int blocks = blocks_that_fit(*function, threads, config->sharedMemBytes) * levers().multiprocessors;
    *numClusters = blocks / static_cast<int>(cluster);
    return CUDA_SUCCESS;
}

CUresult sim::cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config) {
    std::shared_ptr<Function> function;
    SIM_TRY(function_here(func, &function));
    if (!clusterSize || !config) return CUDA_ERROR_INVALID_VALUE;
    bool wide = function->kernel->settings[function->device].non_portable_cluster != 0;
    *clusterSize = levers().major < 9 ? 1 : wide ? largest_cluster : portable_cluster;
    return CUDA_SUCCESS;
}

CUresult sim::cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks,
                                                      int blockSize) {
    std::shared_ptr<Function> function;
    SIM_TRY(function_here(func, &function));
    if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::size_t share = shared_each / static_cast<std::size_t>(numBlocks);
    std::size_t taken = shared_reserved + function->kernel->text.static_shared;
    *dynamicSmemSize = share > taken ? std::min(share - taken, largest_shared) : 0;
    return CUDA_SUCCESS;
}
