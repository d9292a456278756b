// How many bytes an image pointer stands for. Lengths come from the image's own headers only, and are believed only as
// far as memory is mapped.
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "../abi/spool_format.h"
#include "fatbin.h"
#include "image_key.h"

namespace foundry {
namespace {

constexpr uint32_t wrapper_magic = 0x466243b1;
constexpr char simulator_magic[] = "FDRYSIM1";
constexpr size_t most_bytes = size_t{4} << 30;
constexpr size_t longest_text = size_t{256} << 20;

struct Wrapper {
    uint32_t magic, version;
    const void *data;
    const void *others;
};

// Asks the kernel, without touching the memory: MS_ASYNC only walks the mappings.
bool mapped(const void *address, size_t size) {
    auto begin = reinterpret_cast<uintptr_t>(address);
    if (size > most_bytes || begin + size < begin) return false;
    auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    uintptr_t first = begin / page * page;
    return begin >= page && msync(reinterpret_cast<void *>(first), begin + size - first, MS_ASYNC) == 0;
}

template <typename Header> bool read(const uint8_t *at, Header *header) {
    if (!mapped(at, sizeof *header)) return false;
    memcpy(header, at, sizeof *header);
    return true;
}

size_t elf_size(const uint8_t *data) {
    Elf64_Ehdr header;
    if (!read(data, &header) || header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
    if ((header.e_shnum && header.e_shentsize != sizeof(Elf64_Shdr)) ||
        (header.e_phnum && header.e_phentsize != sizeof(Elf64_Phdr)))
        return 0;
    uint64_t end = sizeof header;
    auto reach = [&end](uint64_t offset, uint64_t size) {
        if (offset > most_bytes || size > most_bytes) return false;
        end = std::max(end, offset + size);
        return true;
    };
    uint64_t sections = uint64_t{header.e_shnum} * sizeof(Elf64_Shdr),
             segments = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
    if (!reach(header.e_shnum ? header.e_shoff : 0, sections) || !reach(header.e_phnum ? header.e_phoff : 0, segments))
        return 0;
    if (!mapped(data, end)) return 0;
    for (unsigned index = 0; index < header.e_shnum; ++index) {
        Elf64_Shdr section;
        memcpy(&section, data + header.e_shoff + index * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL && !reach(section.sh_offset, section.sh_size))
            return 0;
    }
    for (unsigned index = 0; index < header.e_phnum; ++index) {
        Elf64_Phdr segment;
        memcpy(&segment, data + header.e_phoff + index * sizeof segment, sizeof segment);
        if (!reach(segment.p_offset, segment.p_filesz)) return 0;
    }
    return end;
}

size_t fatbin_size(const uint8_t *data) {
    FatbinHeader header;
    if (!read(data, &header) || header.header_size < sizeof header || header.body_size > most_bytes) return 0;
    return header.header_size + header.body_size;
}

size_t simulated_size(const uint8_t *data) {
    struct {
        char magic[8];
        uint64_t total;
    } header;
    if (!read(data, &header) || header.total < sizeof header || header.total > most_bytes) return 0;
    return header.total;
}

// PTX is text that ends with a zero; the zero counts as the image's.
size_t text_size(const uint8_t *data) {
    constexpr size_t step = 4096;
    for (size_t size = 0; size < longest_text;) {
        auto at = reinterpret_cast<uintptr_t>(data + size);
        size_t piece = step - at % step;
        if (!mapped(data + size, piece)) return 0;
        if (const void *end = memchr(data + size, 0, piece))
            return static_cast<size_t>(static_cast<const uint8_t *>(end) - data) + 1;
        size += piece;
    }
    return 0;
}

bool looks_like_text(const uint8_t *data) {
    for (int index = 0; index < 4; ++index)
        if (data[index] < 9 || data[index] > 126) return false;
    return true;
}

ImageBytes checked(const uint8_t *data, size_t size, int format) {
    if (!size || !mapped(data, size)) return {data, 0, format};
    return {data, size, format};
}

} // namespace

ImageBytes image_bytes(const void *image) {
    auto *data = static_cast<const uint8_t *>(image);
    uint32_t magic;
    if (!data || !read(data, &magic)) return {data, 0, FOUNDRY_FORMAT_UNKNOWN};
    if (magic == wrapper_magic) {
        Wrapper wrapper;
        if (!read(data, &wrapper) || !wrapper.data) return {data, 0, FOUNDRY_FORMAT_UNKNOWN};
        data = static_cast<const uint8_t *>(wrapper.data);
        // A wrapper stands for a container; one that leads to another wrapper is nobody's.
        if (!read(data, &magic) || magic == wrapper_magic) return {data, 0, FOUNDRY_FORMAT_UNKNOWN};
    }
    if (magic == fatbin_magic) return checked(data, fatbin_size(data), FOUNDRY_FORMAT_FATBIN);
    if (memcmp(&magic, ELFMAG, SELFMAG) == 0) return checked(data, elf_size(data), FOUNDRY_FORMAT_ELF);
    char start[8];
    if (read(data, &start) && memcmp(start, simulator_magic, sizeof start) == 0)
        return checked(data, simulated_size(data), FOUNDRY_FORMAT_SIMULATED);
    if (looks_like_text(data)) return checked(data, text_size(data), FOUNDRY_FORMAT_PTX);
    return {data, 0, FOUNDRY_FORMAT_UNKNOWN};
}

size_t image_size(const void *image, int *format) {
    ImageBytes bytes = image_bytes(image);
    if (format) *format = bytes.format;
    return bytes.size;
}

} // namespace foundry
