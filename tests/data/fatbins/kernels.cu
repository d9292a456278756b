extern "C" __global__ void scale(float* x, float a, int n) { int i = blockIdx.x*blockDim.x+threadIdx.x; if (i<n) x[i] *= a; }
extern "C" __global__ void add(float* x, const float* y, int n) { int i = blockIdx.x*blockDim.x+threadIdx.x; if (i<n) x[i] += y[i]; }
