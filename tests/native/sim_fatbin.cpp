// An image inside a fatbin container loads from the container and from the wrapper that compilers emit; damage is
// refused.
#include "sim_test.h"

int main() {
    start();
    std::vector<char> container = test_image("FOUNDRY_SIM_TEST_FATBIN");
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, container.data()));
    CHECK(cuModuleLoadFatBinary(&module, container.data()));
    struct {
        unsigned magic = 0x466243b1, version = 1;
        const void *data;
        void *unused = nullptr;
    } wrapper;
    wrapper.data = container.data();
    CUlibrary library = nullptr;
    CHECK(cuLibraryLoadData(&library, &wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUkernel kernel = nullptr;
    CHECK(cuLibraryGetKernel(&kernel, library, "vector_add"));

    std::vector<char> other = container;
    other[16 + 28] = 80; // the architecture of the only entry
    EXPECT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, other.data()));
    other = container;
    std::uint64_t flags = 0x8011; // compressed
    std::memcpy(&other[16 + 40], &flags, 8);
    EXPECT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, other.data()));
    other = container;
    std::uint64_t payload = 1ull << 40; // beyond the container
    std::memcpy(&other[16 + 8], &payload, 8);
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, other.data()));
}
