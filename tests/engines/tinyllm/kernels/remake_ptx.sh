#!/bin/sh
# Makes gpu.ptx from gpu.cu, with the nvcc that is found first. No fused multiply-add: sums are those of the CPU.
# The last line says which sources it was made from; a test compares that.
set -eu
cd "$(dirname "$0")"
"${NVCC:-nvcc}" -ptx --fmad=false -arch=compute_75 -o gpu.ptx gpu.cu
echo "// sources $(cat gpu.cu row_math.h | sha256sum | cut -c -64)" >>gpu.ptx
