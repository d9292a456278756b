// Kernels that read their parameters in the ways that there are. `reads_NN.txt` is this for compute capability N.N:
//   nvcc -arch=sm_NN -cubin -o reads.cubin reads.cu, compressed with zlib, as base64
#include <cstdio>

struct Padded { char a; double b; int c; short d; };
struct Slots { int slots[32]; };
struct Sizes { int count; int sizes[25]; long strides[25]; };
typedef int (*Function)(int);

extern "C" __global__ void padded(Padded p, double *out) { out[0] = p.a + p.b + p.c; }
extern "C" __global__ void some_slots(Slots p, int *out) { out[0] = p.slots[3] + p.slots[17]; }
extern "C" __global__ void any_slot(Slots p, int *out, int at) { out[0] = p.slots[at * at & 31]; }
extern "C" __global__ void slot_of_group(const __grid_constant__ Slots p, int *out) { out[blockIdx.x] = p.slots[blockIdx.y + 2]; }
extern "C" __global__ void by_count(Sizes p, long *out) {
    long at = threadIdx.x, found = 0;
#pragma unroll
    for (int each = 0; each < 25; ++each) {
        if (each == p.count) break;
        found += (at & p.sizes[each]) * p.strides[each];
        at >>= 1;
    }
    out[threadIdx.x] = found;
}
extern "C" __global__ void address(const __grid_constant__ Slots p, const int **out) { out[0] = &p.slots[threadIdx.x]; }
extern "C" __global__ void handle(cudaTextureObject_t texture, int unused, float *out) {
    out[threadIdx.x] = tex2D<float>(texture, threadIdx.x, 0);
}
extern "C" __global__ void prints(int number, long unused) { printf("%d\n", number); }
__device__ __noinline__ int twice(int value) { return value * 2 + 1; }
__device__ __noinline__ int square(int value) { return value * value; }
__device__ Function functions[2] = {twice, square};
extern "C" __global__ void calls(int which, int unused, int *out) { out[0] = functions[which](out[1]); }
extern "C" __global__ void nothing(long unused) {}
