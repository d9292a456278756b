// Memory of one process in another, by handle: same bytes both ways, opened often, closed, freed first, owner gone,
// and kept by a child of it.
#include "sim_test.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Shared {
    CUipcMemHandle large, small, freed, interior;
};

int to_child[2], to_parent[2];

template <class Value> void put(int file, const Value &value) {
    REQUIRE(write(file, &value, sizeof value) == sizeof value);
}

template <class Value> Value take(int file) {
    Value value;
    REQUIRE(read(file, &value, sizeof value) == sizeof value);
    return value;
}

CUdeviceptr opened(const CUipcMemHandle &handle) {
    CUdeviceptr address = 0;
    CHECK(cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    return address;
}

void be_the_owner() {
    start();
    const CUdeviceptr large = device_memory(5 << 20), small = device_memory(4096), neighbour = device_memory(4096);
    const CUdeviceptr freed = device_memory(3000);
    CHECK(cuMemsetD32_v2(large + (4 << 20), 11, 1));
    CHECK(cuMemsetD32_v2(neighbour, 12, 1));
    Shared shared;
    CHECK(cuIpcGetMemHandle(&shared.large, large));
    CHECK(cuIpcGetMemHandle(&shared.interior, large + 4096));
    REQUIRE(std::memcmp(&shared.large, &shared.interior, sizeof shared.large) == 0);
    CHECK(cuIpcGetMemHandle(&shared.small, small));
    CHECK(cuIpcGetMemHandle(&shared.freed, freed));
    CHECK(cuMemFree_v2(freed));
    CUdeviceptr own = 0;
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&own, shared.large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    put(to_child[1], shared);
    take<char>(to_parent[0]);
    REQUIRE(word_at(large) == 21 && word_at(small + 8) == 22 && word_at(neighbour) == 12);
    CHECK(cuMemsetD32_v2(small, 13, 1)); // new memory there would be other memory
    CHECK(cuMemFree_v2(large));
    put(to_child[1], 'f');
    const pid_t child = fork();
    if (child == 0) alarm(30);
    if (child > 0) put(to_child[1], child);
    pause();
}

void be_the_other(pid_t owner) {
    start();
    const auto shared = take<Shared>(to_child[0]);
    CUdeviceptr address = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&address, shared.large, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&address, CUipcMemHandle{}, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&address, shared.freed, 1));
    const CUdeviceptr large = opened(shared.large), small = opened(shared.small);
    REQUIRE(opened(shared.large) == large);
    CUdeviceptr base = 0;
    std::size_t size = 0;
    CHECK(cuMemGetAddressRange_v2(&base, &size, large + 77));
    REQUIRE(base == large && size == 5 << 20);
    REQUIRE(word_at(large + (4 << 20)) == 11);
    CHECK(cuMemsetD32_v2(large, 21, 1));
    CHECK(cuMemsetD32_v2(small + 8, 22, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(large));
    CUipcMemHandle again;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&again, large));
    put(to_parent[1], 'w');
    take<char>(to_child[0]);
    REQUIRE(word_at(small) == 13);
    REQUIRE(word_at(large) == 21); // freed by its owner, and still here
    CHECK(cuIpcCloseMemHandle(large));
    REQUIRE(word_at(large) == 21);
    CHECK(cuIpcCloseMemHandle(large));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(large));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&address, shared.large, 1));
    CHECK(cuIpcCloseMemHandle(small));
    const auto child = take<pid_t>(to_child[0]);
    REQUIRE(kill(owner, SIGKILL) == 0 && waitpid(owner, nullptr, 0) == owner);
    const CUdeviceptr kept = opened(shared.small);
    REQUIRE(word_at(kept) == 13);
    CHECK(cuIpcCloseMemHandle(kept));
    REQUIRE(kill(child, SIGKILL) == 0); // another's to wait for
    while (cuIpcOpenMemHandle_v2(&address, shared.small, 1) == CUDA_SUCCESS) CHECK(cuIpcCloseMemHandle(address));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle_v2(&address, shared.small, 1));
}

} // namespace

int main() {
    REQUIRE(pipe(to_child) == 0 && pipe(to_parent) == 0);
    const pid_t owner = fork();
    alarm(30);
    if (owner == 0) {
        be_the_owner();
        return 0;
    }
    be_the_other(owner);
}
