#include "ipc_exports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "arena_blocks.h"
#include "counters.h"
#include "ipc_socket.h"
#include "mapping.h"
#include "state.h"

namespace foundry {
namespace {

// Of physical memory; blocks that share it share the file.
struct Piece {
    int file;
    size_t size;
    unsigned users;
};

struct Export {
    IpcHandle handle;
    Block block;
    std::vector<CUdeviceptr> pieces;
};

struct State {
    uint8_t process[16];
    std::map<CUdeviceptr, Piece> pieces;
    std::map<CUdeviceptr, Export> exports;         // by address of the block
    std::map<uint64_t, CUdeviceptr> by_allocation; // of the handle
};

constexpr int most_files = 1 << 16;

std::mutex mutex; // not held across a driver call
State *state;
std::atomic<bool> any{false};
// The files of the pieces, for the child of a fork, which can't trust what the mutex guards.
std::atomic<uint64_t> files[most_files / 64];

bool draw(void *bytes, size_t size) {
    return getrandom(bytes, size, 0) == static_cast<ssize_t>(size);
}

void keep_file(int file) {
    if (file < most_files) files[file / 64].fetch_or(uint64_t{1} << (file % 64), std::memory_order_relaxed);
}

void close_file(int file) {
    if (file < most_files) files[file / 64].fetch_and(~(uint64_t{1} << (file % 64)), std::memory_order_relaxed);
    close(file);
}

// With the lock held.
State *all() {
    if (state) return state;
    auto *made = new State;
    if (draw(made->process, sizeof made->process)) return state = made;
    delete made;
    return nullptr;
}

// The descriptor of a piece that stands, or -1.
int export_piece(CUdeviceptr address, CUresult *result) {
    CUmemGenericAllocationHandle memory;
    int file = -1;
    if (!real.cuMemRetainAllocationHandle || !real.cuMemExportToShareableHandle) return -1;
    *result = real.cuMemRetainAllocationHandle(&memory, reinterpret_cast<void *>(address));
    if (*result != CUDA_SUCCESS) return -1;
    *result = real.cuMemExportToShareableHandle(&file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    real.cuMemRelease(memory);
    if (*result != CUDA_SUCCESS) return -1;
    fcntl(file, F_SETFD, FD_CLOEXEC);
    return file;
}

// With the lock held: one user less of each.
void let_go(const std::vector<CUdeviceptr> &pieces) {
    for (CUdeviceptr address : pieces) {
        auto piece = state->pieces.find(address);
        if (piece == state->pieces.end() || --piece->second.users) continue;
        close_file(piece->second.file);
        state->pieces.erase(piece);
    }
}

// Adds a user to each piece, exporting those that are not yet. All or nothing.
const char *take_pieces(const std::vector<MappedPiece> &wanted, std::vector<CUdeviceptr> *taken, CUresult *result) {
    for (const MappedPiece &piece : wanted) {
        {
            std::lock_guard<std::mutex> lock(mutex);
            auto known = state->pieces.find(piece.address);
            if (known != state->pieces.end()) {
                ++known->second.users;
                taken->push_back(piece.address);
                continue;
            }
        }
        const int file = export_piece(piece.address, result);
        std::lock_guard<std::mutex> lock(mutex);
        if (file < 0) {
            let_go(*taken);
            return "the driver does not export it";
        }
        auto [known, added] = state->pieces.try_emplace(piece.address, Piece{file, piece.size, 0});
        if (added)
            keep_file(file);
        else
            close(file); // another thread was faster
        ++known->second.users;
        taken->push_back(piece.address);
    }
    return nullptr;
}

// With the lock held.
bool known_handle(const Block &block, IpcHandle *handle) {
    auto known = state->exports.find(block.address);
    if (known == state->exports.end() || known->second.block.ordinal != block.ordinal) return false;
    *handle = known->second.handle;
    return true;
}

// With the lock held; null if there is none.
const Export *find(const IpcHandle &handle) {
    auto address = state->by_allocation.find(handle.allocation);
    if (address == state->by_allocation.end()) return nullptr;
    const Export &found = state->exports.find(address->second)->second;
    return found.handle == handle ? &found : nullptr;
}

// False: this thread did not make it, for another one was faster.
bool add(const Block &block, const std::vector<CUdeviceptr> &pieces, IpcHandle *handle) {
    std::lock_guard<std::mutex> lock(mutex);
    if (known_handle(block, handle)) {
        let_go(pieces);
        return false;
    }
    state->exports[block.address] = {*handle, block, pieces};
    state->by_allocation[handle->allocation] = block.address;
    return true;
}

} // namespace

const char *ipc_export(const Block &block, IpcHandle *handle, CUresult *result) {
    *result = CUDA_SUCCESS;
    *handle = {};
    memcpy(handle->magic, ipc_magic, sizeof ipc_magic);
    handle->size = block.size;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (!all()) return "the system gives no random numbers";
        if (known_handle(block, handle)) return nullptr;
        memcpy(handle->process, state->process, sizeof handle->process);
    }
    if (!draw(&handle->allocation, sizeof handle->allocation)) return "the system gives no random numbers";
    std::vector<MappedPiece> wanted;
    if (!mapped_pieces(block.address, block.size, &wanted)) return "it is not mapped";
    if (wanted.size() > most_ipc_pieces) return "it lies in too many pieces";
    if (const char *problem = ipc_listen(handle->process)) return problem;
    std::vector<CUdeviceptr> taken;
    if (const char *problem = take_pieces(wanted, &taken, result)) return problem;
    any.store(true, std::memory_order_release);
    if (add(block, taken, handle)) count_named("allocations_shared", 1);
    // Freed meanwhile, it must not stay.
    Block now;
    if (!arena_find(block.address, &now) || now.ordinal != block.ordinal) ipc_block_gone(block);
    return nullptr;
}

void ipc_block_gone(const Block &block) {
    if (!any.load(std::memory_order_acquire)) return;
    std::lock_guard<std::mutex> lock(mutex);
    auto known = state->exports.find(block.address);
    if (known == state->exports.end() || known->second.block.ordinal != block.ordinal) return;
    let_go(known->second.pieces);
    state->by_allocation.erase(known->second.handle.allocation);
    state->exports.erase(known);
}

void ipc_send(int connection, const IpcHandle &handle) {
    IpcAnswer answer{};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * most_ipc_pieces)];
    iovec bytes{&answer, sizeof answer};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;

    // Held while it is sent, which waits for nobody: a file that was closed may be another one.
    std::lock_guard<std::mutex> lock(mutex);
    if (const Export *found = find(handle)) {
        answer.known = 1;
        answer.pieces = static_cast<uint32_t>(found->pieces.size());
        answer.offset = found->block.address - found->pieces.front();
        answer.device = found->block.device;
        answer.arena = found->block.arena;
        answer.ordinal = found->block.ordinal;
        snprintf(answer.role, sizeof answer.role, "%s", role());
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * answer.pieces);
        cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * answer.pieces);
        for (uint32_t index = 0; index < answer.pieces; ++index) {
            const Piece &piece = state->pieces.find(found->pieces[index])->second;
            answer.sizes[index] = piece.size;
            memcpy(CMSG_DATA(header) + sizeof(int) * index, &piece.file, sizeof(int));
        }
    }
    while (sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
    }
}

bool ipc_own(const IpcHandle &handle) {
    std::lock_guard<std::mutex> lock(mutex);
    return state && memcmp(state->process, handle.process, sizeof handle.process) == 0;
}

void ipc_exports_forget() {
    new (&mutex) std::mutex;
    state = nullptr;
    any.store(false);
    // The parent's memory must not live as long as its children.
    for (int word = 0; word < most_files / 64; ++word)
        for (uint64_t bits = files[word].exchange(0); bits; bits &= bits - 1) close(word * 64 + __builtin_ctzll(bits));
}

} // namespace foundry
