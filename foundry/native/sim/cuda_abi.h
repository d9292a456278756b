// cuda.h with every old ABI version and per-thread twin declared, and none of the renaming macros.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
