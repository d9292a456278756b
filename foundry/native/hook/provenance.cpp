#include "provenance.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace foundry {
namespace {

struct Search {
    uintptr_t address;
    Provenance *found;
};

void read_notes(const dl_phdr_info *info, const ElfW(Phdr) & segment, char *text, size_t size) {
    auto *at = reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr);
    const char *end = at + segment.p_memsz;
    while (end - at >= static_cast<ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const char *name = at + sizeof note;
        const char *description = name + (note.n_namesz + 3) / 4 * 4;
        if (description > end || static_cast<size_t>(end - description) < note.n_descsz) return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            size_t count = std::min<size_t>(note.n_descsz, (size - 1) / 2);
            for (size_t index = 0; index < count; ++index)
                snprintf(text + 2 * index, 3, "%02x", static_cast<unsigned char>(description[index]));
            return;
        }
        at = description + (note.n_descsz + 3) / 4 * 4;
    }
}

int look_at(dl_phdr_info *info, size_t, void *user) {
    auto *search = static_cast<Search *>(user);
    const ElfW(Phdr) *holder = nullptr;
    for (int index = 0; index < info->dlpi_phnum; ++index) {
        const ElfW(Phdr) &segment = info->dlpi_phdr[index];
        uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && search->address >= begin && search->address - begin < segment.p_filesz)
            holder = &segment;
    }
    if (!holder) return 0;
    Provenance &found = *search->found;
    found.offset = holder->p_offset + (search->address - info->dlpi_addr - holder->p_vaddr);
    if (info->dlpi_name && info->dlpi_name[0]) {
        snprintf(found.path, sizeof found.path, "%s", info->dlpi_name);
    } else {
        ssize_t length = readlink("/proc/self/exe", found.path, sizeof found.path - 1);
        found.path[length > 0 ? length : 0] = 0;
    }
    read_build_id(info, found.build_id, sizeof found.build_id);
    return 1;
}

} // namespace

void read_build_id(const dl_phdr_info *info, char *text, size_t size) {
    text[0] = 0;
    for (int index = 0; index < info->dlpi_phnum && !text[0]; ++index)
        if (info->dlpi_phdr[index].p_type == PT_NOTE) read_notes(info, info->dlpi_phdr[index], text, size);
}

Provenance provenance_of(const void *address) {
    Provenance found;
    Search search{reinterpret_cast<uintptr_t>(address), &found};
    dl_iterate_phdr(look_at, &search);
    return found;
}

} // namespace foundry
