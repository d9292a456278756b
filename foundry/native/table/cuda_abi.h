// cuda.h with every exported ABI name declared as itself: old versions, new versions and per-thread-stream twins.
// Include this instead of cuda.h, and before anything that includes it.
#ifndef FOUNDRY_TABLE_CUDA_ABI_H
#define FOUNDRY_TABLE_CUDA_ABI_H

#ifndef __CUDA_API_VERSION_INTERNAL
#ifdef __cuda_cuda_h__
#error "cuda.h was included without __CUDA_API_VERSION_INTERNAL"
#endif
#define __CUDA_API_VERSION_INTERNAL
#endif

// Driver functions are the only names that leave the library besides dlsym and foundry_*.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#endif
