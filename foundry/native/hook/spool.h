// Writer of the spool (abi/spool_format.h).
//
//   Frame(FOUNDRY_EVENT_FREE).u64(address).u32(device).u8(arena).write();
//
// Contract: a frame is built in memory of its own and leaves in one writev under the spool's mutex, which is never held
// across a driver call. write() answers false when the spool is closed or failed; a failed write disarms the hook.
// Frames of up to 232 bytes of payload allocate nothing.
#ifndef FOUNDRY_HOOK_SPOOL_H
#define FOUNDRY_HOOK_SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../abi/spool_format.h"

namespace foundry {

class Frame {
  public:
    explicit Frame(uint16_t kind) : kind_(kind) {}
    ~Frame();
    Frame(const Frame &) = delete;
    Frame &operator=(const Frame &) = delete;

    Frame &u8(uint8_t value) { return raw(&value, sizeof value); }
    Frame &u16(uint16_t value) { return raw(&value, sizeof value); }
    Frame &u32(uint32_t value) { return raw(&value, sizeof value); }
    Frame &i32(int32_t value) { return raw(&value, sizeof value); }
    Frame &u64(uint64_t value) { return raw(&value, sizeof value); }
    Frame &handle(const void *value) { return u64(reinterpret_cast<uint64_t>(value)); }
    Frame &str(const char *text) { return bytes(text, text ? strlen(text) : 0); }
    Frame &bytes(const void *data, size_t size) { return u32(static_cast<uint32_t>(size)).raw(data, size); }
    Frame &raw(const void *data, size_t size);

    // Room for a list count that is known later: at = size() before u32(0), then patch_u32(at, count).
    size_t size() const { return size_; }
    void patch_u32(size_t at, uint32_t value);
    // Drops what was written after `size`.
    void truncate(size_t size);

    bool write();

  private:
    bool reserve(size_t more);
    uint16_t kind_;
    bool failed_ = false;
    size_t size_ = 0;
    size_t capacity_ = sizeof inline_;
    unsigned char *heap_ = nullptr;
    unsigned char inline_[232];
};

// Makes `<folder>/events` and writes BEGIN and DRIVER. False with errno in *error.
bool spool_open(const char *folder, int *error);
bool spool_is_open();
// Writes COUNTERS and END and closes. Later frames are dropped.
void spool_close();
// The child of a fork: forgets the parent's file.
void spool_forget();

// Writes a blob file; *blob is its number. The file is complete when this returns true.
bool spool_blob(const void *data, size_t size, uint32_t *blob);
// The same from two pieces, for callers that read in windows: begin, add ..., end.
struct BlobWriter {
    int file = -1;
    uint32_t number = 0;
};
bool spool_blob_begin(BlobWriter *writer);
bool spool_blob_add(BlobWriter *writer, const void *data, size_t size);
bool spool_blob_end(BlobWriter *writer, uint32_t *blob);

// FINDING, printf-like. `once`: the same code is written only the first time in this process.
void finding(const char *code, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_once(const char *code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// COUNTERS with all totals as they stand, and the moments that have come.
void spool_counters();

} // namespace foundry

#endif
