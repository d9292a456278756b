/* The device behind libcuda.so.1, a GPU or the simulator: the operations as kernels on one stream. */
#ifndef TINYLLM_CUDA_H
#define TINYLLM_CUDA_H

#include "device.h"

/* Driver errors end the program. One device a process. */
struct device *cuda_open(void);

void *cuda_stream(struct device *device);
/* The image that its kernels are from, and its size if that is asked for. */
const void *cuda_image(struct device *device, size_t *bytes);

#endif
