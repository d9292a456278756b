// Ranges of 2 TiB at the addresses that captures use are to be had, all at once.
#include "sim_test.h"

int main() {
    CHECK(cuInit(0));
    for (CUdeviceptr wish :
         {0x100000000000ull, 0x200000000000ull, 0x300000000000ull, 0x400000000000ull, 0x500000000000ull}) {
        CUdeviceptr got = 0;
        CHECK(cuMemAddressReserve(&got, 2ull << 40, 0, wish, 0));
        REQUIRE(got == wish || (std::getenv("FOUNDRY_SIM_TEST_SANITIZED") && wish == 0x100000000000));
        CHECK(cuMemAddressFree(got, 2ull << 40));
    }
}
