// Copies and fills in one, two and three dimensions; addresses that no device knows.
#include "sim_test.h"

int main() {
    start();
    CUstream stream = new_stream();
    std::vector<std::uint8_t> in(64 * 8), out(64 * 8, 0);
    for (std::size_t index = 0; index < in.size(); ++index) in[index] = static_cast<std::uint8_t>(index * 7);
    CUdeviceptr one = device_memory(in.size()), two = device_memory(in.size());
    CHECK(cuMemcpyHtoDAsync_v2(one, in.data(), in.size(), stream));
    CHECK(cuMemcpyDtoDAsync_v2(two, one, in.size(), stream));
    CHECK(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(out.data()), two, in.size(), stream));
    CHECK(cuStreamSynchronize(stream));
    REQUIRE(in == out);

    CUDA_MEMCPY2D flat = {};
    flat.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    flat.srcDevice = one;
    flat.srcPitch = 64;
    flat.srcXInBytes = 4;
    flat.srcY = 2;
    flat.dstMemoryType = CU_MEMORYTYPE_HOST;
    flat.dstHost = out.data();
    flat.dstPitch = 16;
    flat.WidthInBytes = 16;
    flat.Height = 3;
    CHECK(cuMemcpy2D_v2(&flat));
    for (std::size_t row = 0; row < 3; ++row) REQUIRE(std::memcmp(&out[row * 16], &in[(row + 2) * 64 + 4], 16) == 0);
    flat.Height = 7; // runs past the source
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&flat));

    CHECK(cuMemsetD2D16_v2(one, 64, 0xabcd, 3, 2));
    CHECK(cuMemcpyDtoH_v2(out.data(), one, out.size()));
    REQUIRE(out[0] == 0xcd && out[1] == 0xab && out[5] == 0xab && out[6] == in[6] && out[64] == 0xcd &&
            out[128] == in[128]);
    CHECK(cuMemsetD32Async(one, 0x01020304, 4, stream));
    REQUIRE(word_at(one + 12) == 0x01020304);

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(reinterpret_cast<CUdeviceptr>(out.data()), in.data(), 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(one, in.data(), in.size() + 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(reinterpret_cast<CUdeviceptr>(out.data()), 0, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(one + 2, 0, 1));
    CHECK(cuMemcpyHtoD_v2(one, in.data(), 0));
}
