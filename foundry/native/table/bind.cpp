#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "call.h"
#include "real.h"
#include "real_dlsym.h"
#include "row.h"
#include "simulated_rows.h"

namespace foundry {
namespace {

struct Address {
    const void *address;
    uint16_t row;
};

// What is found out about a driver; never changed once it is published.
struct Binding {
    Bind state = Bind::bound;
    int version = 0;
    bool simulated = false;
    uintptr_t begin = 0, end = 0; // of the driver's own mappings
    char path[512] = "";
    char problem[1024] = "";
    size_t address_count = 0;
    Address addresses[2 * row_count]; // of hooks and driver functions, ascending

    void add_problem(const char *text, const Row &row);
    void find_library(void *library);
    void find_functions(void *library);
    void check_entry_points();
    void index_addresses();
};

// Looking functions up takes the loader's lock, and code that the loader runs may call us: so there is no lock of ours
// around it. Threads that come at once each find the same, and the first to be done is believed.
std::atomic<const Binding *> current{nullptr};
__thread bool binding_now __attribute__((tls_model("initial-exec"))) = false;

void Binding::add_problem(const char *text, const Row &row) {
    size_t used = strlen(problem);
    if (used + 1 >= sizeof problem) return;
    snprintf(problem + used, sizeof problem - used, "%s%s %s (CUDA %u.%u)", used ? ", " : "", text, row.name,
             row.since / 1000, row.since % 1000 / 10);
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

void Binding::find_library(void *library) {
    struct link_map *map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map) return;
    snprintf(path, sizeof path, "%s", map->l_name);
    Span span{map->l_addr, 0, 0};
    dl_iterate_phdr(find_span, &span);
    begin = span.begin;
    end = span.end;
}

void Binding::find_functions(void *library) {
    DlsymFunction look_up = real_dlsym();
    auto *get_version = reinterpret_cast<decltype(&::cuDriverGetVersion)>(look_up(library, "cuDriverGetVersion"));
    if (!get_version || get_version(&version) != CUDA_SUCCESS || version <= 0) {
        version = 0;
        snprintf(problem, sizeof problem, "it does not tell its version");
    }
    SimulatedRows simulator(library, version);
    simulated = simulator.present();
    for (const Row &row : rows) {
        void *found = look_up(library, row.name);
        auto value = reinterpret_cast<uintptr_t>(found);
        // A dependency of the driver may export the name as well; only the driver's own counts.
        if (end && (value < begin || value >= end)) found = nullptr;
        if (found && simulator.lacks(row, found)) found = nullptr;
        if (!found && row.since <= static_cast<uint32_t>(version)) add_problem("the driver lacks", row);
        *row.real = found;
    }
    check_entry_points();
}

// A driver that only hands calls on may tell of functions that lie elsewhere; what comes by them would not be seen.
void Binding::check_entry_points() {
    void *answer = nullptr;
    if (!real.cuGetProcAddress || real.cuGetProcAddress("cuInit", &answer, version, 0) != CUDA_SUCCESS || !answer)
        return;
    auto value = reinterpret_cast<uintptr_t>(answer);
    if (problem[0] || !end || (value >= begin && value < end)) return;
    snprintf(problem, sizeof problem, "it answers cuGetProcAddress with functions that it does not export");
}

void Binding::index_addresses() {
    for (const Row &row : rows) {
        auto index = static_cast<uint16_t>(&row - rows);
        addresses[address_count++] = {row.hook, index};
        if (*row.real) addresses[address_count++] = {*row.real, index};
    }
    std::sort(addresses, addresses + address_count,
              [](const Address &a, const Address &b) { return a.address < b.address; });
    for (size_t index = 1; index < address_count; ++index)
        if (addresses[index].address == addresses[index - 1].address) {
            add_problem("one address serves both", rows[addresses[index - 1].row]);
            add_problem("and", rows[addresses[index].row]);
        }
}

void *loaded_driver() {
    for (const char *name : {"libcuda.so.1", "libcuda.so"})
        if (void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
    return nullptr;
}

const Binding *binding() {
    return current.load(std::memory_order_acquire);
}

} // namespace

Bind bind_state() {
    const Binding *bound = binding();
    return bound ? bound->state : Bind::unbound;
}

Bind bind_driver(void *library) {
    if (const Binding *bound = binding()) return bound->state;
    if (binding_now) return Bind::unbound;
    if (!library) library = loaded_driver();
    if (!library) return Bind::absent;
    binding_now = true;
    auto *made = new Binding;
    made->find_library(library);
    made->find_functions(library);
    made->index_addresses();
    if (made->problem[0]) made->state = Bind::refused;
    binding_now = false;
    const Binding *first = nullptr;
    if (!current.compare_exchange_strong(first, made, std::memory_order_acq_rel)) {
        delete made;
        return first->state;
    }
    return made->state;
}

bool in_bind() {
    return binding_now;
}

const char *bind_problem() {
    const Binding *bound = binding();
    return bound ? bound->problem : "";
}

int driver_version() {
    const Binding *bound = binding();
    return bound ? bound->version : 0;
}

bool driver_simulated() {
    const Binding *bound = binding();
    return bound && bound->simulated;
}

const char *driver_path() {
    const Binding *bound = binding();
    return bound ? bound->path : "";
}

bool in_driver(const void *address) {
    const Binding *bound = binding();
    auto value = reinterpret_cast<uintptr_t>(address);
    return bound && value >= bound->begin && value < bound->end;
}

const Row *row_by_address(const void *address) {
    const Binding *bound = binding();
    if (!bound) return nullptr;
    const Address *end = bound->addresses + bound->address_count;
    const Address *found =
        std::lower_bound(bound->addresses, end, address,
                         [](const Address &entry, const void *wanted) { return entry.address < wanted; });
    return found != end && found->address == address ? &rows[found->row] : nullptr;
}

CUresult driver_missing() {
    return bind_state() == Bind::unbound ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_NOT_SUPPORTED;
}

} // namespace foundry
