/* What samples.cu uses of the CUDA runtime, on the driver's own functions and with per-thread default streams: the
 * runtime itself asks for tables that only the real driver has. Kernels come from the image that SAMPLES_KERNELS names;
 * the program lists them in `stand_in_kernels`. */
#ifndef STAND_IN_CUDA_RUNTIME_H
#define STAND_IN_CUDA_RUNTIME_H

#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define __global__ __attribute__((unused)) static
#define CUDART_CB CUDA_CB
#define STAND_IN __attribute__((unused)) static inline

typedef CUresult cudaError_t;
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUgraphExecUpdateResultInfo cudaGraphExecUpdateResultInfo;

enum { cudaStreamNonBlocking = CU_STREAM_NON_BLOCKING, cudaEventDisableTiming = CU_EVENT_DISABLE_TIMING };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
#define cudaSuccess CUDA_SUCCESS
#define cudaStreamPerThread CU_STREAM_PER_THREAD
#define cudaStreamCaptureModeThreadLocal CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};
struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
};
struct stand_in_kernel {
    const void *function;
    const char *name;
};
extern const struct stand_in_kernel stand_in_kernels[2];
static const dim3 blockIdx, blockDim, threadIdx;

/* The primary context, which the runtime makes current in each thread that calls it. */
STAND_IN CUcontext stand_in_context(void) {
    static CUdevice device;
    static thread_local CUcontext context;
    if (!context && (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
                     cuCtxSetCurrent(context)))
        abort();
    return context;
}

STAND_IN CUfunction stand_in_function(const void *function) {
    static const CUlibrary library = [] {
        CUlibrary loaded;
        const char *image = getenv("SAMPLES_KERNELS");
        if (!image || cuLibraryLoadFromFile(&loaded, image, NULL, NULL, 0, NULL, NULL, 0)) abort();
        return loaded;
    }();
    CUkernel kernel;
    CUfunction found;
    for (const stand_in_kernel &one : stand_in_kernels)
        if (one.function == function && !cuLibraryGetKernel(&kernel, library, one.name) &&
            !cuKernelGetFunction(&found, kernel))
            return found;
    abort();
}

STAND_IN CUdeviceptr stand_in_address(const void *address) {
    return (CUdeviceptr)(uintptr_t)address;
}

STAND_IN CUDA_KERNEL_NODE_PARAMS stand_in_kernel_node(const cudaKernelNodeParams *kernel) {
    CUDA_KERNEL_NODE_PARAMS made;
    memset(&made, 0, sizeof made);
    made.func = stand_in_function(kernel->func);
    made.gridDimX = kernel->gridDim.x;
    made.gridDimY = made.gridDimZ = made.blockDimY = made.blockDimZ = 1;
    made.blockDimX = kernel->blockDim.x;
    made.sharedMemBytes = kernel->sharedMemBytes;
    made.kernelParams = kernel->kernelParams;
    return made;
}

#define STAND_IN_CALL(name, parameters, call)                                                                          \
    STAND_IN cudaError_t name parameters {                                                                             \
        stand_in_context();                                                                                            \
        return call;                                                                                                   \
    }
#define ADDRESS(pointer) stand_in_address(pointer)

STAND_IN const char *cudaGetErrorString(cudaError_t error) {
    const char *text = NULL;
    return cuGetErrorString(error, &text) || !text ? "unknown" : text;
}
STAND_IN_CALL(cudaGetLastError, (void), CUDA_SUCCESS)
STAND_IN_CALL(cudaFree, (void *address), address ? cuMemFree(ADDRESS(address)) : CUDA_SUCCESS)
STAND_IN_CALL(cudaMalloc, (void **address, size_t size), cuMemAlloc((CUdeviceptr *)address, size))
STAND_IN_CALL(cudaMallocAsync, (void **address, size_t size, cudaStream_t stream),
              cuMemAllocAsync((CUdeviceptr *)address, size, stream))
STAND_IN_CALL(cudaFreeAsync, (void *address, cudaStream_t stream), cuMemFreeAsync(ADDRESS(address), stream))
STAND_IN_CALL(cudaMemcpyAsync, (void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t stream),
              cuMemcpyAsync(ADDRESS(to), ADDRESS(from), size, stream))
STAND_IN_CALL(cudaMemsetAsync, (void *address, int value, size_t size, cudaStream_t stream),
              cuMemsetD8Async(ADDRESS(address), (unsigned char)value, size, stream))
STAND_IN_CALL(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), cuStreamCreate(stream, flags))
STAND_IN_CALL(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(stream))
STAND_IN_CALL(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
              cuStreamWaitEvent(stream, event, flags))
STAND_IN_CALL(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), cuEventCreate(event, flags))
STAND_IN_CALL(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, stream))
STAND_IN_CALL(cudaLaunchHostFunc, (cudaStream_t stream, CUhostFn function, void *data),
              cuLaunchHostFunc(stream, function, data))
STAND_IN_CALL(cudaLaunchKernel,
              (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
              cuLaunchKernel(stand_in_function(function), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                             (unsigned)shared, stream, arguments, NULL))
STAND_IN_CALL(cudaStreamBeginCapture, (cudaStream_t stream, CUstreamCaptureMode mode),
              cuStreamBeginCapture(stream, mode))
STAND_IN_CALL(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), cuStreamEndCapture(stream, graph))
STAND_IN_CALL(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags), cuGraphCreate(graph, flags))
STAND_IN_CALL(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))
STAND_IN_CALL(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
              cuGraphInstantiateWithFlags(exec, graph, flags))
STAND_IN_CALL(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch(exec, stream))
STAND_IN_CALL(cudaGraphExecUpdate, (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info),
              cuGraphExecUpdate(exec, graph, info))

STAND_IN cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                            size_t count, const cudaKernelNodeParams *kernel) {
    CUDA_KERNEL_NODE_PARAMS made = stand_in_kernel_node(kernel);
    return cuGraphAddKernelNode(node, graph, after, count, &made);
}
STAND_IN cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *kernel) {
    CUDA_KERNEL_NODE_PARAMS made = stand_in_kernel_node(kernel);
    return cuGraphKernelNodeSetParams(node, &made);
}
STAND_IN cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                            size_t count, const cudaMemsetParams *fill) {
    CUDA_MEMSET_NODE_PARAMS made = {ADDRESS(fill->dst), fill->pitch, fill->value,
                                    fill->elementSize,  fill->width, fill->height};
    return cuGraphAddMemsetNode(node, graph, after, count, &made, stand_in_context());
}
STAND_IN cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                              size_t count, void *to, const void *from, size_t size, cudaMemcpyKind) {
    CUDA_MEMCPY3D made;
    memset(&made, 0, sizeof made);
    made.srcMemoryType = made.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    made.srcDevice = ADDRESS(from);
    made.dstDevice = ADDRESS(to);
    made.WidthInBytes = size;
    made.Height = made.Depth = 1;
    return cuGraphAddMemcpyNode(node, graph, after, count, &made, stand_in_context());
}

#undef ADDRESS
#endif
