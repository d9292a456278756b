// environment: CUDA_MODULE_LOADING=EAGER
// With eager loading a function is loaded with its module.
#include "sim_test.h"

int main() {
    start();
    CUmoduleLoadingMode mode = CU_MODULE_LAZY_LOADING;
    CHECK(cuModuleGetLoadingMode(&mode));
    REQUIRE(mode == CU_MODULE_EAGER_LOADING);
    TestLibrary library;
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
    CHECK(cuFuncIsLoaded(&state, library.function("count")));
    REQUIRE(state == CU_FUNCTION_LOADING_STATE_LOADED);
}
