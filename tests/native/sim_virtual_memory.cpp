// Reserve, create, map, give access, unmap, map elsewhere: contents stay with the physical memory.
#include "sim_test.h"

int main() {
    start();
    const std::size_t unit = 2 << 20;
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    std::size_t granularity = 0;
    CHECK(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    REQUIRE(granularity == unit);

    const CUdeviceptr wish = 0x400000000000;
    CUdeviceptr range = 0, other = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&range, unit + 4096, 0, 0, 0));
    CHECK(cuMemAddressReserve(&range, 2ull << 40, 0, wish, 0));
    REQUIRE(range == wish);
    CHECK(cuMemAddressReserve(&other, 8 * unit, 0, wish + unit, 0)); // taken: another address
    REQUIRE(other != wish + unit && other % unit == 0);

    CUmemGenericAllocationHandle handle = 0, second = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 4096, &properties, 0));
    CHECK(cuMemCreate(&handle, 2 * unit, &properties, 0));
    CHECK(cuMemCreate(&second, unit, &properties, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(range + 4096, 2 * unit, 0, handle, 0));
    CHECK(cuMemMap(range + unit, 2 * unit, 0, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(range + 2 * unit, unit, 0, second, 0)); // overlaps
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(range + unit, 1, 16));             // no access yet
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(range, 3 * unit, &access, 1)); // a hole
    CHECK(cuMemSetAccess(range + unit, 2 * unit, &access, 1));
    CHECK(cuMemMap(range + 3 * unit, unit, 0, second, 0));
    CHECK(cuMemSetAccess(range + 3 * unit, unit, &access, 1));
    CHECK(cuMemsetD32_v2(range + unit, 0x11223344, 3 * unit / 4)); // over both mappings
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(range + 3 * unit, 1, unit + 1));

    CUdeviceptr base = 0;
    std::size_t size = 0;
    CHECK(cuMemGetAddressRange_v2(&base, &size, range + 2 * unit + 5));
    REQUIRE(base == range + unit && size == 2 * unit);
    unsigned flag = 1;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base));
    CUipcMemHandle ipc;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&ipc, base));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(base));

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(range + unit, unit)); // half of a mapping
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(range, 2ull << 40));
    CHECK(cuMemUnmap(range + unit, 3 * unit));
    CHECK(cuMemMap(other, 2 * unit, 0, handle, 0));
    CHECK(cuMemRelease(handle)); // the mapping keeps it
    CHECK(cuMemSetAccess(other, 2 * unit, &access, 1));
    REQUIRE(word_at(other + 2 * unit - 4) == 0x11223344);
    CUmemGenericAllocationHandle retained = 0;
    CHECK(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void *>(other + 5)));
    CHECK(cuMemUnmap(other, 2 * unit));
    CHECK(cuMemMap(range, 2 * unit, 0, retained, 0));
    CHECK(cuMemSetAccess(range, 2 * unit, &access, 1));
    REQUIRE(word_at(range) == 0x11223344);
    CHECK(cuMemUnmap(range, 2 * unit));
    CHECK(cuMemRelease(retained));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRelease(retained));
    CHECK(cuMemRelease(second));
    CHECK(cuMemAddressFree(range, 2ull << 40));
    CHECK(cuMemAddressFree(other, 8 * unit));
    CUdeviceptr again = 0;
    CHECK(cuMemAddressReserve(&again, 2ull << 40, 0, wish, 0));
    REQUIRE(again == wish);
    std::size_t free_bytes = 0, total = 0;
    CHECK(cuMemGetInfo_v2(&free_bytes, &total));
    REQUIRE(free_bytes == total);

    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CHECK(cuMemCreate(&handle, unit, &properties, 0));
    int file = -1;
    CHECK(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CHECK(cuMemImportFromShareableHandle(&second, reinterpret_cast<void *>(static_cast<std::intptr_t>(file)),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CHECK(cuMemMap(again, unit, 0, handle, 0));
    CHECK(cuMemMap(again + unit, unit, 0, second, 0));
    CHECK(cuMemSetAccess(again, 2 * unit, &access, 1));
    CHECK(cuMemsetD32_v2(again, 77, 1));
    REQUIRE(word_at(again + unit) == 77);
}
