// Kernels that share memory which a program can name.
__constant__ float table[8];
__device__ int counter = 5;
__device__ float state[32];
static __device__ const int primes[4] = {2, 3, 5, 7};

__global__ void reads(float *out, int n) { out[threadIdx.x] = table[n & 7] * primes[n & 3]; }
__global__ void counts(float *out) { out[threadIdx.x] = state[31] * atomicAdd(&counter, 1); }
