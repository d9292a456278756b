#include "bypass.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "../table/real_dlsym.h"
#include "../table/row.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

#if __ELF_NATIVE_CLASS == 64
#define FOUNDRY_RELOCATION_SYMBOL ELF64_R_SYM
#else
#define FOUNDRY_RELOCATION_SYMBOL ELF32_R_SYM
#endif

struct Library {
    std::string path;
    std::string first; // name that goes past the hook
    unsigned count = 0;
};

struct Tables {
    const ElfW(Sym) *symbols = nullptr;
    const char *names = nullptr;
    uintptr_t relocations[2] = {0, 0};
    size_t sizes[2] = {0, 0};
};

std::mutex mutex;
std::set<std::string> *told; // libraries that a finding names already

bool wanted_name(const char *name) {
    if (strcmp(name, "dlsym") == 0) return true;
    return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z' && row_by_name(name) != nullptr;
}

bool past_the_hook(const char *name, const void *bound) {
    if (strcmp(name, "dlsym") == 0) return bound == reinterpret_cast<void *>(real_dlsym());
    const Row *row = row_by_name(name);
    Treatment treatment = mode() == FOUNDRY_MODE_RESTORE ? row->restore : row->capture;
    return treatment != Treatment::pass && bound == *row->real;
}

Tables tables_of(const dl_phdr_info *info) {
    Tables tables;
    for (int index = 0; index < info->dlpi_phnum; ++index) {
        if (info->dlpi_phdr[index].p_type != PT_DYNAMIC) continue;
        auto *entry = reinterpret_cast<const ElfW(Dyn) *>(info->dlpi_addr + info->dlpi_phdr[index].p_vaddr);
        // The loader has relocated these pointers in place, except in the kernel's own object.
        for (; entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_un.d_ptr < info->dlpi_addr && (entry->d_tag == DT_SYMTAB || entry->d_tag == DT_STRTAB))
                return {};
            switch (entry->d_tag) {
            case DT_SYMTAB:
                tables.symbols = reinterpret_cast<const ElfW(Sym) *>(entry->d_un.d_ptr);
                break;
            case DT_STRTAB:
                tables.names = reinterpret_cast<const char *>(entry->d_un.d_ptr);
                break;
            case DT_RELA:
                tables.relocations[0] = entry->d_un.d_ptr;
                break;
            case DT_RELASZ:
                tables.sizes[0] = entry->d_un.d_val;
                break;
            case DT_JMPREL:
                tables.relocations[1] = entry->d_un.d_ptr;
                break;
            case DT_PLTRELSZ:
                tables.sizes[1] = entry->d_un.d_val;
                break;
            }
        }
    }
    return tables;
}

struct Search {
    uintptr_t self; // where the hook is loaded
    std::vector<Library> found;
};

// Runs with the loader's lock held: must not call into the loader.
int look_at(dl_phdr_info *info, size_t, void *user) {
    auto *search = static_cast<Search *>(user);
    Tables tables = tables_of(info);
    if (!tables.symbols || !tables.names || !info->dlpi_addr) return 0;
    Library library;
    for (int table = 0; table < 2; ++table) {
        if (!tables.relocations[table]) continue;
        auto *entry = reinterpret_cast<const ElfW(Rela) *>(tables.relocations[table]);
        for (size_t index = 0; index < tables.sizes[table] / sizeof *entry; ++index) {
            auto symbol = FOUNDRY_RELOCATION_SYMBOL(entry[index].r_info);
            if (!symbol) continue;
            const char *name = tables.names + tables.symbols[symbol].st_name;
            if (!wanted_name(name)) continue;
            const void *bound = *reinterpret_cast<void *const *>(info->dlpi_addr + entry[index].r_offset);
            if (!past_the_hook(name, bound)) continue;
            if (!library.count++) library.first = name;
        }
    }
    // The driver and the C library may of course call themselves, and the hook them.
    bool own = in_driver(reinterpret_cast<void *>(info->dlpi_addr)) || strstr(info->dlpi_name, "/libc.so") ||
               strstr(info->dlpi_name, "/libdl.so");
    if (!library.count || own || info->dlpi_addr == search->self) return 0;
    library.path = info->dlpi_name;
    search->found.push_back(library);
    return 0;
}

} // namespace

void bypass_report() {
    if (bind_state() != Bind::bound || !spool_is_open()) return;
    real_dlsym();
    Dl_info self{};
    dladdr(reinterpret_cast<void *>(&bypass_report), &self);
    Search search{reinterpret_cast<uintptr_t>(self.dli_fbase), {}};
    dl_iterate_phdr(look_at, &search);
    for (const Library &library : search.found) {
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (!told) told = new std::set<std::string>;
            if (!told->insert(library.path).second) continue;
        }
        finding("hook-bypassed",
                "`%s` reaches `%s` past the hook, %u such functions in all (opened with RTLD_DEEPBIND?); what it does "
                "is not seen",
                library.path.c_str(), library.first.c_str(), library.count);
    }
}

void bypass_forget() {
    new (&mutex) std::mutex;
    told = nullptr;
}

} // namespace foundry
