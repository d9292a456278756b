#include "fatbin_thin.h"

#include "fatbin.h"
#include "spool.h"

namespace foundry {

bool fatbin_thin_blob(const uint8_t *data, size_t size, uint32_t compute_capability, uint32_t *blob) {
    uint64_t body = 0;
    bool has_code = false;
    bool whole = fatbin_each(data, size, [&](const FatbinEntry &entry, const uint8_t *, const uint8_t *) {
        if (entry.architecture != compute_capability) return;
        body += entry.header_size + entry.payload_size;
        has_code = has_code || entry.kind == fatbin_elf;
    });
    BlobWriter writer;
    if (!whole || !has_code || !spool_blob_begin(&writer)) return false;
    FatbinHeader header;
    memcpy(&header, data, sizeof header);
    header.body_size = body;
    spool_blob_add(&writer, &header, sizeof header);
    spool_blob_add(&writer, data + sizeof header, header.header_size - sizeof header);
    fatbin_each(data, size, [&](const FatbinEntry &entry, const uint8_t *head, const uint8_t *) {
        if (entry.architecture == compute_capability)
            spool_blob_add(&writer, head, entry.header_size + entry.payload_size);
    });
    return spool_blob_end(&writer, blob);
}

} // namespace foundry
