// environment: FOUNDRY_SIM_DEVICES=2
// Mapped memory in another process, by file descriptor: what was written before and after it was exported.
#include "sim_test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t unit = 2 << 20;

void send_file(int socket, int file) {
    char byte = 0, control[CMSG_SPACE(sizeof file)] = {};
    iovec bytes{&byte, 1};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
    REQUIRE(sendmsg(socket, &message, 0) == 1);
}

int receive_file(int socket) {
    int file = -1;
    char byte = 0, control[CMSG_SPACE(sizeof file)] = {};
    iovec bytes{&byte, 1};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    REQUIRE(recvmsg(socket, &message, 0) == 1);
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    return file;
}

CUmemAllocationProp properties(CUmemAllocationHandleType types) {
    CUmemAllocationProp made = {};
    made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    made.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
    made.requestedHandleTypes = types;
    return made;
}

CUdeviceptr mapped(CUmemGenericAllocationHandle memory) {
    CUdeviceptr address = 0;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, {1}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(cuMemAddressReserve(&address, 2 * unit, 0, 0, 0));
    CHECK(cuMemMap(address, 2 * unit, 0, memory, 0));
    CHECK(cuMemSetAccess(address, 2 * unit, &access, 1));
    return address;
}

int exported(CUmemGenericAllocationHandle memory) {
    int file = -1;
    CHECK(cuMemExportToShareableHandle(&file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    return file;
}

void be_the_owner(int socket) {
    start(1);
    const auto shared = properties(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), alone = properties({});
    CUmemGenericAllocationHandle memory = 0, private_memory = 0, one_of_many = 0;
    const int before = dup(0);
    for (int index = 0; index < 8; ++index) CHECK(cuMemCreate(&one_of_many, unit, &shared, 0));
    CHECK(cuMemCreate(&memory, 2 * unit, &shared, 0));
    CHECK(cuMemCreate(&private_memory, unit, &alone, 0));
    const int after = dup(0);
    REQUIRE(after <= before + 2); // memory that may be exported takes no descriptor before it is
    int file = -1;
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemExportToShareableHandle(&file, private_memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    const CUdeviceptr here = mapped(memory), there = mapped(memory);
    CHECK(cuMemsetD32_v2(here + 2 * unit - 4, 11, 1));
    file = exported(memory);
    REQUIRE(word_at(there + 2 * unit - 4) == 11);
    CHECK(cuMemsetD32_v2(there + 8, 12, 1));
    send_file(socket, file);
    close(file);
    char done = 0;
    REQUIRE(read(socket, &done, 1) == 1);
    REQUIRE(word_at(here) == 13 && word_at(there) == 13);
    CHECK(cuMemUnmap(here, 2 * unit));
    CHECK(cuMemUnmap(there, 2 * unit));
    CHECK(cuMemRelease(memory));
    REQUIRE(write(socket, &done, 1) == 1);
}

void be_the_other(int socket) {
    start(1);
    const int file = receive_file(socket);
    CUmemGenericAllocationHandle memory = 0;
    CHECK(cuMemImportFromShareableHandle(&memory, reinterpret_cast<void *>(static_cast<std::intptr_t>(file)),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(file);
    const CUdeviceptr here = mapped(memory);
    CHECK(cuMemRelease(memory));
    int device = -1;
    CHECK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, here));
    REQUIRE(device == 1);
    REQUIRE(word_at(here + 2 * unit - 4) == 11 && word_at(here + 8) == 12);
    CHECK(cuMemsetD32_v2(here, 13, 1));
    char done = 0;
    REQUIRE(write(socket, &done, 1) == 1 && read(socket, &done, 1) == 1);
    REQUIRE(word_at(here) == 13); // given back by its owner, and still here
    CHECK(cuMemUnmap(here, 2 * unit));
}

} // namespace

int main() {
    int sockets[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    const pid_t owner = fork();
    if (owner == 0) {
        be_the_owner(sockets[0]);
        return 0;
    }
    close(sockets[0]);
    be_the_other(sockets[1]);
    int status = 1;
    REQUIRE(waitpid(owner, &status, 0) == owner && status == 0);
}
