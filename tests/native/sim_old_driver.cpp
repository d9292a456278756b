// environment: FOUNDRY_SIM_VERSION=12020
// An older driver lacks what is newer, by look-up and by call.
#include "sim_test.h"

int main() {
    start();
    int version = 0;
    CHECK(cuDriverGetVersion(&version));
    REQUIRE(version == 12020);
    void *address = &version;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    EXPECT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuKernelGetParamInfo", &address, 12020, 0, &status));
    REQUIRE(!address && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(cuGetProcAddress_v2("cuGraphGetEdges", &address, 12020, 0, &status));
    REQUIRE(address == reinterpret_cast<void *>(&cuGraphGetEdges));
    CUgraph graph = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    std::size_t count = 0;
    EXPECT(CUDA_ERROR_NOT_FOUND, cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count));
    CHECK(cuGraphGetEdges(graph, nullptr, nullptr, &count));
}
