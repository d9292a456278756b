// Kernels with everything that an image can hold for one kernel or for all of them, but variables.
#include <cassert>

namespace {
__global__ void hidden(int *out) { out[threadIdx.x] = 3; }
} // namespace

template <typename T, int N> __global__ void sum(T *out, const T *in) {
    __shared__ T part[N];
    part[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (!threadIdx.x)
        for (int at = 0; at < N; at++) out[0] += part[at];
}
template __global__ void sum<float, 64>(float *, const float *);
template __global__ void sum<double, 32>(double *, const double *);

__device__ __noinline__ float divided(float by) { return 1.5f / by; }
__global__ void calls(float *out) { out[threadIdx.x] = divided(out[threadIdx.x]); }
__global__ void checks(int *out, int n) {
    assert(n > 0);
    out[threadIdx.x] = n;
}
__global__ void limited(float *out, float by) __launch_bounds__(64);
__global__ void limited(float *out, float by) {
    extern __shared__ float shared[];
    shared[threadIdx.x] = sinf(out[threadIdx.x] * 1e9f);
    __syncthreads();
    out[threadIdx.x] = shared[threadIdx.x ^ 1] / by;
}
__global__ void branches(float *out, int n) {
    float v = out[threadIdx.x];
    switch (n) {
    case 0: v = __sinf(v); out[1] = v; break;
    case 1: v = sqrtf(v); out[2] = v * v; break;
    case 2: atomicAdd(out, v); break;
    case 3: __syncthreads(); v = out[threadIdx.x ^ 1]; break;
    case 4: out[v > 3.0f ? 7 : 9] = v; break;
    case 5: for (int at = 0; at < threadIdx.x; at++) v = v * v + out[at]; break;
    case 6: v = __shfl_xor_sync(~0u, v, 1); break;
    case 7: v = __expf(v); out[3] = v; break;
    default: v = -v;
    }
    out[threadIdx.x] = v;
}
void use() { hidden<<<1, 1>>>(nullptr); }
