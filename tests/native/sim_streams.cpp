// Streams of all sorts, their attributes, host functions, callbacks, events with times.
#include "sim_test.h"

static void add_one(void *number) {
    ++*static_cast<int *>(number);
}
static void CUDA_CB called(CUstream, CUresult result, void *number) {
    *static_cast<int *>(number) += result == CUDA_SUCCESS ? 10 : 0;
}

int main() {
    start();
    CUstream stream = nullptr;
    CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
    int priority = 0;
    unsigned flags = 0;
    CHECK(cuStreamGetPriority(stream, &priority));
    CHECK(cuStreamGetFlags(stream, &flags));
    REQUIRE(priority == -5 && flags == CU_STREAM_NON_BLOCKING);
    unsigned long long legacy = 0, own = 0, mine = 0;
    CHECK(cuStreamGetId(nullptr, &legacy));
    CHECK(cuStreamGetId_ptsz(nullptr, &own));
    CHECK(cuStreamGetId(stream, &mine));
    REQUIRE(legacy != own && own != mine);
    unsigned long long explicit_legacy = 0, explicit_own = 0;
    CHECK(cuStreamGetId_ptsz(CU_STREAM_LEGACY, &explicit_legacy));
    CHECK(cuStreamGetId(CU_STREAM_PER_THREAD, &explicit_own));
    REQUIRE(explicit_legacy == legacy && explicit_own == own);
    int number = 0;
    CHECK(cuLaunchHostFunc(stream, add_one, &number));
    CHECK(cuStreamAddCallback(stream, called, &number, 0));
    CHECK(cuStreamSynchronize(stream));
    REQUIRE(number == 11);
    CHECK(cuStreamQuery(stream));

    CUevent first = new_event(0), second = new_event(0), untimed = new_event();
    float milliseconds = -1;
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, first, second));
    CHECK(cuEventRecord(first, stream));
    CHECK(cuEventRecord(second, nullptr));
    CHECK(cuStreamWaitEvent(stream, second, 0));
    CHECK(cuEventSynchronize(second));
    CHECK(cuEventElapsedTime(&milliseconds, first, second));
    REQUIRE(milliseconds >= 0);
    CHECK(cuEventRecord(untimed, stream));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, first, untimed));
    CHECK(cuEventDestroy_v2(first));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(first, stream));
    CHECK(cuStreamDestroy_v2(stream));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
}
