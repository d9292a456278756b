#include "ipc_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "patience.h"
#include "threads.h"

namespace foundry {
namespace {

constexpr int most_waiting = 128;
constexpr timeval longest_question{2, 0};
constexpr const char *late = "its process does not answer in time";
constexpr const char *silent = "its process gives no answer";

std::mutex mutex;
std::atomic<int> listener{-1};

// The name begins with a zero byte: it is no file's, and goes with the socket.
socklen_t name_of(const uint8_t process[16], sockaddr_un *name) {
    *name = {};
    name->sun_family = AF_UNIX;
    char *text = name->sun_path + 1;
    int length = snprintf(text, sizeof name->sun_path - 1, "foundry-ipc-");
    for (int index = 0; index < 16; ++index) length += snprintf(text + length, 3, "%02x", process[index]);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

bool same_user(int connection) {
    ucred other{};
    socklen_t size = sizeof other;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

void answer(int connection) {
    IpcHandle handle;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &longest_question, sizeof longest_question);
    if (same_user(connection) && recv(connection, &handle, sizeof handle, 0) == sizeof handle)
        ipc_send(connection, handle);
}

void *serve(void *argument) {
    const int socket = static_cast<int>(reinterpret_cast<intptr_t>(argument));
    for (;;) {
        const int connection = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection >= 0) {
            answer(connection);
            close(connection);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            const timespec pause{0, 10'000'000};
            nanosleep(&pause, nullptr);
        } else if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) {
            return nullptr;
        }
    }
}

void limit_waiting(int connection, std::chrono::steady_clock::time_point until) {
    using namespace std::chrono;
    // Zero would be for ever.
    const auto left = std::max<int64_t>(duration_cast<microseconds>(until - steady_clock::now()).count(), 1);
    timeval time{};
    time.tv_sec = left / 1'000'000;
    time.tv_usec = left % 1'000'000;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

// Repeats a call that a signal interrupts, within the time.
template <typename Call> ssize_t patiently(int connection, Call call) {
    for (const auto until = std::chrono::steady_clock::now() + patience();;) {
        limit_waiting(connection, until);
        const ssize_t result = call();
        if (result >= 0 || errno != EINTR || std::chrono::steady_clock::now() >= until) return result;
    }
}

void take_files(msghdr *message, std::vector<int> *files) {
    for (cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
            int file;
            memcpy(&file, reinterpret_cast<const char *>(header) + at, sizeof file);
            files->push_back(file);
        }
    }
}

const char *ask(int connection, const IpcHandle &handle, IpcAnswer *answer, std::vector<int> *files, CUresult *result) {
    sockaddr_un name;
    const socklen_t length = name_of(handle.process, &name);
    if (patiently(connection, [&] { return connect(connection, reinterpret_cast<sockaddr *>(&name), length); }) < 0) {
        if (errno != ECONNREFUSED) return errno == EAGAIN || errno == EINTR ? late : silent;
        *result = CUDA_ERROR_INVALID_HANDLE;
        return "its process is not there any more";
    }
    if (!same_user(connection)) return "its process is another user's";
    if (patiently(connection, [&] { return send(connection, &handle, sizeof handle, MSG_NOSIGNAL); }) < 0)
        return errno == EAGAIN ? late : silent;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * most_ipc_pieces)];
    iovec bytes{answer, sizeof *answer};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = patiently(connection, [&] { return recvmsg(connection, &message, MSG_CMSG_CLOEXEC); });
    if (got < 0) return errno == EAGAIN ? late : silent;
    take_files(&message, files);
    if (got == 0) return silent;
    if (got != sizeof *answer || (message.msg_flags & MSG_TRUNC)) return "its process has another version of Foundry";
    if (!answer->known) {
        *result = CUDA_ERROR_INVALID_VALUE;
        return "its process has freed it";
    }
    if (message.msg_flags & MSG_CTRUNC) return "there is no file descriptor left for it";
    const bool whole = answer->pieces && answer->pieces <= most_ipc_pieces && answer->pieces == files->size();
    return whole ? nullptr : "its process answers what makes no sense";
}

} // namespace

const char *ipc_listen(const uint8_t process[16]) {
    if (listener.load(std::memory_order_acquire) >= 0) return nullptr;
    std::lock_guard<std::mutex> lock(mutex);
    if (listener.load(std::memory_order_relaxed) >= 0) return nullptr;
    sockaddr_un name;
    const socklen_t length = name_of(process, &name);
    const int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const bool bound =
        made >= 0 && bind(made, reinterpret_cast<sockaddr *>(&name), length) == 0 && listen(made, most_waiting) == 0;
    if (bound && start_thread("foundry-ipc", serve, reinterpret_cast<void *>(static_cast<intptr_t>(made)))) {
        listener.store(made, std::memory_order_release);
        return nullptr;
    }
    if (made >= 0) close(made);
    return "there is no socket or thread to hand it over";
}

const char *ipc_ask(const IpcHandle &handle, IpcAnswer *answer, std::vector<int> *files, CUresult *result) {
    *result = CUDA_ERROR_MAP_FAILED;
    const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0) return "there is no file descriptor left for it";
    const char *problem = ask(connection, handle, answer, files, result);
    close(connection);
    if (problem) {
        for (int file : *files) close(file);
        files->clear();
    }
    return problem;
}

void ipc_socket_forget() {
    new (&mutex) std::mutex;
    // Who asks the parent must be refused once that is gone, not kept waiting by its children.
    if (const int inherited = listener.exchange(-1); inherited >= 0) close(inherited);
}

} // namespace foundry
