// cuGetProcAddress gives the newest ABI that is not newer than the version asked for, in the flavour asked for.
#include "sim_test.h"

static void *look_up(const char *name, int version, cuuint64_t flags = 0) {
    void *address = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CHECK(cuGetProcAddress_v2(name, &address, version, flags, &status));
    REQUIRE(status == CU_GET_PROC_ADDRESS_SUCCESS);
    return address;
}

template <class Function> static void *address_of(Function *function) {
    return reinterpret_cast<void *>(function);
}

int main() {
    REQUIRE(look_up("cuMemAlloc", 12000) == address_of(cuMemAlloc_v2));
    REQUIRE(look_up("cuGraphInstantiate", 10000) == address_of(cuGraphInstantiate));
    REQUIRE(look_up("cuGraphInstantiate", 13000) == address_of(cuGraphInstantiate_v2));
    REQUIRE(look_up("cuGraphInstantiateWithFlags", 13000) == address_of(cuGraphInstantiateWithFlags));
    REQUIRE(look_up("cuCtxCreate", 12040) == address_of(cuCtxCreate_v3));
    REQUIRE(look_up("cuCtxCreate", 12050) == address_of(cuCtxCreate_v4));
    REQUIRE(look_up("cuStreamGetCaptureInfo", 11030) == address_of(cuStreamGetCaptureInfo_v2));
    REQUIRE(look_up("cuStreamGetCaptureInfo", 12030) == address_of(cuStreamGetCaptureInfo_v3));
    REQUIRE(look_up("cuGetProcAddress", 11030) == address_of(cuGetProcAddress));
    REQUIRE(look_up("cuGetProcAddress", 12000) == address_of(cuGetProcAddress_v2));
    REQUIRE(look_up("", 13000) == address_of(cuGetProcAddress_v2));
    const cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, legacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    REQUIRE(look_up("cuLaunchKernel", 12000, own) == address_of(cuLaunchKernel_ptsz));
    REQUIRE(look_up("cuLaunchKernel", 12000, legacy) == address_of(cuLaunchKernel));
    REQUIRE(look_up("cuMemcpyHtoD", 12000, own) == address_of(cuMemcpyHtoD_v2_ptds));
    REQUIRE(look_up("cuStreamGetCaptureInfo", 12020, own) == address_of(cuStreamGetCaptureInfo_v2_ptsz));
    REQUIRE(look_up("cuMemAlloc", 12000, own) == address_of(cuMemAlloc_v2));

    void *address = &address;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    EXPECT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuNoSuchThing", &address, 13000, 0, &status));
    REQUIRE(!address && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuLibraryLoadData", &address, 11080, 0, &status));
    REQUIRE(!address && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2(nullptr, &address, 13000, 0, nullptr));
    CHECK(cuGetProcAddress("cuInit", &address, 13000, 0));
    REQUIRE(address == address_of(cuInit));
}
