#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>

#include "../table/row.h"
#include "counters.h"
#include "crc32c.h"
#include "moments.h"
#include "role.h"
#include "state.h"

namespace foundry {
namespace {

struct Header {
    uint16_t kind, thread;
    uint32_t crc;
    uint64_t length;
};
static_assert(sizeof(Header) == 16);

std::mutex file_mutex; // guards the file and the position
std::atomic<bool> is_open{false};
int file = -1;
uint64_t position; // bytes of whole frames
dev_t file_device;
ino_t file_number;
char events_path[4200];
char folder_path[4096];
std::atomic<uint32_t> next_blob{0};

// The C library's fstat has a newer version than the hook may need.
int identify(int descriptor, dev_t *device, ino_t *number) {
    struct stat status;
    if (syscall(SYS_fstat, descriptor, &status) != 0) return errno;
    *device = status.st_dev;
    *number = status.st_ino;
    return 0;
}

// A program may close descriptors that it does not know, and get the number again for a file of its own.
bool still_ours() {
    dev_t device = 0;
    ino_t number = 0;
    return file >= 0 && identify(file, &device, &number) == 0 && device == file_device && number == file_number;
}

int open_events(int flags) {
    int opened = open(events_path, O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0600);
    if (opened < 0) return -1;
    // Out of the way of programs that count on low numbers.
    int moved = fcntl(opened, F_DUPFD_CLOEXEC, 200);
    if (moved >= 0) {
        close(opened);
        opened = moved;
    }
    return opened;
}

// 0, or the errno; then the file ends at the last whole frame.
int put(const Header &header, const void *payload) {
    if (!still_ours()) {
        file = open_events(0);
        dev_t device = 0;
        ino_t number = 0;
        if (file < 0) return errno;
        if (identify(file, &device, &number) != 0 || device != file_device || number != file_number) return ESTALE;
    }
    size_t total = sizeof header + header.length, done = 0;
    while (done < total) {
        iovec parts[2];
        int count = 0;
        if (done < sizeof header)
            parts[count++] = {const_cast<char *>(reinterpret_cast<const char *>(&header)) + done, sizeof header - done};
        size_t skip = done > sizeof header ? done - sizeof header : 0;
        if (header.length > skip)
            parts[count++] = {static_cast<char *>(const_cast<void *>(payload)) + skip, header.length - skip};
        ssize_t written = writev(file, parts, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            int error = written < 0 ? errno : ENOSPC;
            if (ftruncate(file, static_cast<off_t>(position)) != 0) error = error ? error : errno;
            return error;
        }
        done += static_cast<size_t>(written);
    }
    position += total;
    return 0;
}

void fail(const char *what, int error, uint64_t size) {
    is_open.store(false, std::memory_order_release);
    char text[4200];
    snprintf(text, sizeof text, "%s/broken", folder_path);
    if (int made = open(text, O_WRONLY | O_CREAT | O_CLOEXEC, 0600); made >= 0) close(made);
    snprintf(text, 400, "%s of %llu bytes could not be written to the spool: %s", what,
             static_cast<unsigned long long>(size), strerror(error));
    disarm(text);
}

void add_counter(const char *name, uint64_t value, void *user) {
    auto *state = static_cast<std::pair<Frame *, uint32_t> *>(user);
    state->first->str(name).u64(value);
    ++state->second;
}

std::mutex once_mutex;
uint64_t once_seen[64];
unsigned once_count;

bool first_time(const char *code) {
    uint64_t hash = 14695981039346656037u;
    for (const char *letter = code; *letter; ++letter)
        hash = (hash ^ static_cast<unsigned char>(*letter)) * 1099511628211u;
    std::lock_guard<std::mutex> lock(once_mutex);
    for (unsigned index = 0; index < once_count; ++index)
        if (once_seen[index] == hash) return false;
    if (once_count < sizeof once_seen / sizeof *once_seen) once_seen[once_count++] = hash;
    return true;
}

void write_finding(const char *code, const char *format, va_list list) {
    if (!spool_is_open()) return;
    char text[1024];
    vsnprintf(text, sizeof text, format, list);
    Frame(FOUNDRY_EVENT_FINDING).str(code).str(text).write();
}

} // namespace

Frame::~Frame() {
    free(heap_);
}

bool Frame::reserve(size_t more) {
    if (size_ + more <= capacity_) return true;
    size_t wanted = capacity_ * 2;
    while (wanted < size_ + more) wanted *= 2;
    auto *grown = static_cast<unsigned char *>(realloc(heap_, wanted));
    if (!grown) return false;
    if (!heap_) memcpy(grown, inline_, size_);
    heap_ = grown;
    capacity_ = wanted;
    return true;
}

Frame &Frame::raw(const void *data, size_t size) {
    if (!size || failed_) return *this;
    if (!reserve(size)) {
        failed_ = true;
        return *this;
    }
    memcpy((heap_ ? heap_ : inline_) + size_, data, size);
    size_ += size;
    return *this;
}

void Frame::patch_u32(size_t at, uint32_t value) {
    if (at + sizeof value <= size_) memcpy((heap_ ? heap_ : inline_) + at, &value, sizeof value);
}

void Frame::truncate(size_t size) {
    if (size < size_) size_ = size;
}

bool Frame::write() {
    if (!spool_is_open()) return false;
    const unsigned char *payload = heap_ ? heap_ : inline_;
    int saved_errno = errno;
    int error = failed_ ? ENOMEM : 0;
    if (!error) {
        Header header{kind_, thread_ordinal(), crc32c(0, payload, size_), size_};
        std::lock_guard<std::mutex> lock(file_mutex);
        if (!spool_is_open()) return false;
        error = put(header, payload);
    }
    if (error) fail("a frame", error, sizeof(Header) + size_);
    errno = saved_errno;
    return !error;
}

bool spool_open(const char *folder, int *error) {
    snprintf(folder_path, sizeof folder_path, "%s", folder);
    snprintf(events_path, sizeof events_path, "%s/events", folder);
    file = open_events(O_CREAT | O_EXCL);
    if (file < 0) {
        *error = errno;
        return false;
    }
    if ((*error = identify(file, &file_device, &file_number)) != 0) return false;
    position = 0;
    is_open.store(true, std::memory_order_release);

    char executable[256];
    executable_name(executable, sizeof executable);
    Frame begin(FOUNDRY_EVENT_BEGIN);
    begin.u32(FOUNDRY_ABI).u32(static_cast<uint32_t>(mode())).str(role()).str(executable);
    size_t at = begin.size();
    uint32_t count = 0;
    begin.u32(0);
    for (unsigned index = 0; const char *name = kept_variable(index); ++index)
        if (const char *value = getenv(name)) {
            begin.str(name).str(value);
            ++count;
        }
    begin.patch_u32(at, count);
    if (!begin.write()) return false;
    return Frame(FOUNDRY_EVENT_DRIVER)
        .u32(static_cast<uint32_t>(driver_version()))
        .u32(driver_simulated())
        .str(driver_path())
        .write();
}

bool spool_is_open() {
    return is_open.load(std::memory_order_acquire);
}

void spool_close() {
    spool_counters();
    Frame(FOUNDRY_EVENT_END).write();
    is_open.store(false, std::memory_order_release);
    std::lock_guard<std::mutex> lock(file_mutex);
    if (still_ours()) close(file);
    file = -1;
}

void spool_forget() {
    new (&file_mutex) std::mutex;
    new (&once_mutex) std::mutex;
    is_open.store(false);
    if (still_ours()) close(file);
    file = -1;
    next_blob.store(0);
    once_count = 0;
}

bool spool_blob_begin(BlobWriter *writer) {
    if (!spool_is_open()) return false;
    int saved_errno = errno;
    writer->number = next_blob.fetch_add(1, std::memory_order_relaxed);
    char path[4200];
    snprintf(path, sizeof path, "%s/blob.%u", folder_path, writer->number);
    writer->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (writer->file < 0) fail("a blob", errno, 0);
    errno = saved_errno;
    return writer->file >= 0;
}

bool spool_blob_add(BlobWriter *writer, const void *data, size_t size) {
    if (writer->file < 0) return false;
    int saved_errno = errno;
    auto *bytes = static_cast<const char *>(data);
    while (size) {
        ssize_t written = write(writer->file, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            fail("a blob", written < 0 ? errno : ENOSPC, size);
            close(writer->file);
            writer->file = -1;
            errno = saved_errno;
            return false;
        }
        bytes += written;
        size -= static_cast<size_t>(written);
    }
    errno = saved_errno;
    return true;
}

bool spool_blob_end(BlobWriter *writer, uint32_t *blob) {
    if (writer->file < 0) return false;
    close(writer->file);
    writer->file = -1;
    *blob = writer->number;
    return true;
}

bool spool_blob(const void *data, size_t size, uint32_t *blob) {
    BlobWriter writer;
    return spool_blob_begin(&writer) && spool_blob_add(&writer, data, size) && spool_blob_end(&writer, blob);
}

void finding(const char *code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    write_finding(code, format, list);
    va_end(list);
}

void finding_once(const char *code, const char *format, ...) {
    if (!spool_is_open() || !first_time(code)) return;
    va_list list;
    va_start(list, format);
    write_finding(code, format, list);
    va_end(list);
}

void spool_counters() {
    Frame frame(FOUNDRY_EVENT_COUNTERS);
    std::pair<Frame *, uint32_t> state{&frame, 0};
    frame.u32(0);
    counters_each(add_counter, &state);
    moments_each(add_counter, &state);
    frame.patch_u32(0, state.second);
    frame.write();
}

} // namespace foundry
