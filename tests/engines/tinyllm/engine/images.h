/* The kernels as images that the driver loads; embed_images.py writes images.c. */
#ifndef TINYLLM_IMAGES_H
#define TINYLLM_IMAGES_H

#include <stddef.h>

extern const unsigned char gpu_image[];       /* PTX text, ended by a NUL */
extern const unsigned char simulator_image[]; /* of the simulator's own format */
extern const size_t gpu_image_bytes, simulator_image_bytes;

#endif
