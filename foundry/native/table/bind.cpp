#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "call.h"
#include "real.h"
#include "real_dlsym.h"
#include "row.h"

namespace foundry {
namespace {

struct Address {
    const void *address;
    uint16_t row;
};

std::mutex bind_mutex;
std::atomic<Bind> state{Bind::unbound};
Address addresses[2 * row_count];
size_t address_count;
int version;
char problem[1024];
char path[512];
uintptr_t driver_begin, driver_end;

// Appends to `problem`; what does not fit is cut.
void add_problem(const char *text, const char *name, uint32_t since) {
    size_t used = strlen(problem);
    if (used + 1 >= sizeof problem) return;
    snprintf(problem + used, sizeof problem - used, "%s%s %s (CUDA %u.%u)", used ? ", " : "", text, name, since / 1000, since % 1000 / 10);
}

struct Span {
    uintptr_t base;
    uintptr_t begin, end;
};

int find_span(dl_phdr_info *info, size_t, void *user) {
    auto *span = static_cast<Span *>(user);
    if (info->dlpi_addr != span->base) return 0;
    for (int index = 0; index < info->dlpi_phnum; ++index) {
        const ElfW(Phdr) &segment = info->dlpi_phdr[index];
        if (segment.p_type != PT_LOAD) continue;
        uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
        if (!span->begin || begin < span->begin) span->begin = begin;
        span->end = std::max<uintptr_t>(span->end, begin + segment.p_memsz);
    }
    return 1;
}

void *loaded_driver() {
    for (const char *name : {"libcuda.so.1", "libcuda.so"})
        if (void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
    return nullptr;
}

// The simulator exports every function whatever version it plays; what that version has, its own entry-point query knows.
struct Simulator {
    decltype(&::cuGetProcAddress) query = nullptr;

    bool lacks(const Row &row, const void *found) const {
        if (!query) return false;
        if (row.since > static_cast<uint32_t>(version)) return true;
        char name[128];
        snprintf(name, sizeof name, "%s", row.name);
        size_t length = strlen(name);
        bool twin = length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0);
        if (twin) name[length -= 5] = 0;
        if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v') name[length - 3] = 0;
        void *answer = nullptr;
        auto flags = twin ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
        return query(name, &answer, static_cast<int>(row.since), flags) != CUDA_SUCCESS || answer != found;
    }
};

void fill(void *library) {
    DlsymFunction look_up = real_dlsym();
    struct link_map *map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map) {
        snprintf(path, sizeof path, "%s", map->l_name);
        Span span{map->l_addr, 0, 0};
        dl_iterate_phdr(find_span, &span);
        driver_begin = span.begin;
        driver_end = span.end;
    }
    auto *get_version = reinterpret_cast<decltype(&::cuDriverGetVersion)>(look_up(library, "cuDriverGetVersion"));
    if (get_version) get_version(&version);
    Simulator simulator;
    if (look_up(library, "foundry_sim_version"))
        simulator.query = reinterpret_cast<decltype(&::cuGetProcAddress)>(look_up(library, "cuGetProcAddress"));

    for (const Row &row : rows) {
        void *found = look_up(library, row.name);
        // A dependency of the driver may export the name as well; only the driver's own counts.
        if (found && driver_end && !in_driver(found)) found = nullptr;
        if (found && simulator.lacks(row, found)) found = nullptr;
        if (!found && row.since <= static_cast<uint32_t>(version)) add_problem("the driver lacks", row.name, row.since);
        *row.real = found;
    }
}

void index_addresses() {
    size_t count = 0;
    for (const Row &row : rows) {
        uint16_t index = static_cast<uint16_t>(&row - rows);
        addresses[count++] = {row.hook, index};
        if (*row.real) addresses[count++] = {*row.real, index};
    }
    std::sort(addresses, addresses + count, [](const Address &a, const Address &b) { return a.address < b.address; });
    for (size_t index = 1; index < count; ++index)
        if (addresses[index].address == addresses[index - 1].address) {
            const Row &first = rows[addresses[index - 1].row];
            add_problem("one address serves both", first.name, first.since);
            add_problem("and", rows[addresses[index].row].name, rows[addresses[index].row].since);
        }
    address_count = count;
}

}  // namespace

Bind bind_state() { return state.load(std::memory_order_acquire); }

Bind bind_driver(void *library) {
    Bind now = bind_state();
    if (now == Bind::bound || now == Bind::refused) return now;
    void *found = library ? library : loaded_driver();
    if (!found) return Bind::absent;
    std::lock_guard<std::mutex> lock(bind_mutex);
    now = bind_state();
    if (now == Bind::bound || now == Bind::refused) return now;
    fill(found);
    index_addresses();
    now = problem[0] ? Bind::refused : Bind::bound;
    state.store(now, std::memory_order_release);
    return now;
}

const char *bind_problem() { return problem; }
int driver_version() { return version; }
const char *driver_path() { return path; }

bool in_driver(const void *address) {
    auto value = reinterpret_cast<uintptr_t>(address);
    return value >= driver_begin && value < driver_end;
}

const Row *row_by_address(const void *address) {
    Bind now = bind_state();
    if (now != Bind::bound && now != Bind::refused) return nullptr;
    auto *found = std::lower_bound(addresses, addresses + address_count, address,
                                   [](const Address &entry, const void *wanted) { return entry.address < wanted; });
    if (found == addresses + address_count || found->address != address) return nullptr;
    return &rows[found->row];
}

CUresult driver_missing() { return bind_state() == Bind::unbound ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace foundry
