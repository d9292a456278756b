// Modules and libraries: kernels, globals of each load, lazy functions, unloads, refusals.
#include "sim_test.h"

static std::uint64_t counter_of(CUmodule module) {
    CUdeviceptr address = 0;
    std::size_t size = 0;
    CHECK(cuModuleGetGlobal_v2(&address, &size, module, "counter"));
    REQUIRE(size == 8);
    std::uint64_t value = 0;
    CHECK(cuMemcpyDtoH_v2(&value, address, 8));
    return value;
}

int main() {
    start();
    std::vector<char> image = test_image();
    CUmodule one = nullptr, two = nullptr;
    CHECK(cuModuleLoadData(&one, image.data()));
    CHECK(cuModuleLoadDataEx(&two, image.data(), 0, nullptr, nullptr));
    CUfunction count = nullptr, same = nullptr, missing = nullptr;
    CHECK(cuModuleGetFunction(&count, one, "count"));
    CHECK(cuModuleGetFunction(&same, one, "count"));
    REQUIRE(count == same);
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&missing, one, "no_such_kernel"));
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_LOADED;
    CHECK(cuFuncIsLoaded(&state, count));
    REQUIRE(state == CU_FUNCTION_LOADING_STATE_UNLOADED);
    CHECK(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    CHECK(cuFuncIsLoaded(&state, count));
    REQUIRE(state == CU_FUNCTION_LOADING_STATE_LOADED);
    REQUIRE(counter_of(one) == 8 && counter_of(two) == 7);
    unsigned functions = 0;
    CHECK(cuModuleGetFunctionCount(&functions, one));
    REQUIRE(functions == 7);
    std::vector<CUfunction> all(functions);
    CHECK(cuModuleEnumerateFunctions(all.data(), functions, one));
    REQUIRE(all[2] == count);
    CUmodule owner = nullptr;
    CHECK(cuFuncGetModule(&owner, count));
    REQUIRE(owner == one);
    const char *name = nullptr;
    CHECK(cuFuncGetName(&name, count));
    REQUIRE(std::string(name) == "count");
    CHECK(cuModuleUnload(one));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(one));

    const char ptx[] = ".version 8.0\n.target sm_90\n";
    EXPECT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&one, ptx));
    unsigned char cubin[64] = {0x7f, 'E', 'L', 'F'};
    EXPECT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&one, cubin));
    unsigned char noise[64] = {1, 2, 3, 4};
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&one, noise));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&one, nullptr));
    EXPECT(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&one, "/nonexistent/kernels.fsim"));
    CHECK(cuModuleLoad(&one, std::getenv("FOUNDRY_SIM_TEST_IMAGE")));

    TestLibrary library;
    CUkernel kernel = library.kernel("add_constant");
    REQUIRE(kernel == library.kernel("add_constant"));
    unsigned kernels = 0;
    CHECK(cuLibraryGetKernelCount(&kernels, library.library));
    REQUIRE(kernels == 7);
    CUlibrary back = nullptr;
    CHECK(cuKernelGetLibrary(&back, kernel));
    REQUIRE(back == library.library);
    const std::size_t places[][2] = {{0, 8}, {8, 1}, {12, 4}, {16, 8}};
    std::size_t offset = 0, size = 0;
    for (std::size_t index = 0; index < 4; ++index) {
        CHECK(cuKernelGetParamInfo(kernel, index, &offset, &size));
        REQUIRE(offset == places[index][0] && size == places[index][1]);
        CHECK(cuFuncGetParamInfo(library.function("add_constant"), index, &offset, nullptr));
    }
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo(kernel, 4, &offset, &size));
    CUmodule module = nullptr;
    CHECK(cuLibraryGetModule(&module, library.library));
    CHECK(cuModuleGetFunction(&same, module, "add_constant"));
    REQUIRE(same == library.function("add_constant"));
    EXPECT(CUDA_ERROR_NOT_PERMITTED, cuModuleUnload(module));
    CUdeviceptr global = 0;
    CHECK(cuLibraryGetGlobal(&global, &size, library.library, "counter"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&global, &size, library.library, "nothing"));
    unsigned type = 0;
    CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, global));
    REQUIRE(type == CU_MEMORYTYPE_DEVICE);
    // A kernel where a function is expected, as launches take it.
    CHECK(cuLaunchKernel(reinterpret_cast<CUfunction>(library.kernel("count")), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr,
                         nullptr));
    REQUIRE(counter_of(module) == 8);
    CHECK(cuLibraryUnload(library.library));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, kernel));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(global, 0, 8));
}
