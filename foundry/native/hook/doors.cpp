#include "doors.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "../table/call.h"
#include "../table/real_dlsym.h"
#include "counters.h"
#include "state.h"

namespace foundry {
namespace {

// Length of a name without _vN, _ptsz, _ptds.
size_t base_length(const char *name) {
    size_t length = strlen(name);
    auto ends = [&](const char *suffix) {
        size_t size = strlen(suffix);
        return length > size && memcmp(name + length - size, suffix, size) == 0;
    };
    if (ends("_ptsz") || ends("_ptds")) length -= 5;
    if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v' && name[length - 1] >= '0' &&
        name[length - 1] <= '9')
        length -= 3;
    return length;
}

Treatment treatment(const Row &row) {
    return mode() == FOUNDRY_MODE_RESTORE ? row.restore : row.capture;
}

// A row that is only forwarded needs no detour.
bool wanted(const Row &row) {
    if (mode() == FOUNDRY_MODE_OFF) return false;
    if (bind_state() == Bind::refused) arm(); // to say why; no cuInit will come this way
    return bind_state() == Bind::bound && treatment(row) != Treatment::pass;
}

// Binds by the library that the address lies in, for programs that opened the driver under another name than its
// soname.
void bind_by_address(const void *address) {
    if (bind_driver(nullptr) != Bind::absent) return;
    Dl_info info;
    struct link_map *map = nullptr;
    if (!dladdr1(address, &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) || !map || !map->l_name) return;
    const char *slash = strrchr(map->l_name, '/');
    if (strncmp(slash ? slash + 1 : map->l_name, "libcuda.so", 10) != 0) return;
    if (void *library = dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD)) bind_driver(library);
}

bool answer_with(void *value, void **answer) {
    *answer = value;
    return true;
}

} // namespace

void *route_address(void *address, const char *name) {
    if (!address) return address;
    const Row *row = row_by_address(address);
    if (!row || !wanted(*row)) return address;
    // An address that serves a name of another family is not the function that the list means.
    size_t asked = base_length(name), listed = base_length(row->name);
    if (asked > listed || memcmp(name, row->name, asked) != 0) return address;
    return row->hook;
}

bool door_dlsym(void *handle, const char *name, const void *caller, void **answer) {
    if (inside_hook() || in_bind() || in_driver(caller)) return false;
    const Row *row = row_by_name(name);
    if (!row) return false;

    if (handle == RTLD_NEXT) {
        // What comes next depends on the caller, so only its own call can ask; the name decides instead.
        bind_driver(nullptr);
        if (!wanted(*row) || !*row->real) return false;
        count(counters.doors_dlsym);
        return answer_with(row->hook, answer);
    }

    DlsymFunction look_up = real_dlsym();
    void *found = look_up(handle, name);
    if (!found) return answer_with(nullptr, answer);
    if (found == row->hook) {
        // Our own export shadows the driver's; without a driver that has the function there would be no such name.
        bind_driver(nullptr);
        if (!*row->real) return answer_with(look_up(RTLD_NEXT, name), answer);
        if (wanted(*row)) count(counters.doors_dlsym);
        return answer_with(wanted(*row) ? found : *row->real, answer);
    }
    bind_by_address(found);
    void *routed = route_address(found, name);
    if (routed != found) count(counters.doors_dlsym);
    return answer_with(routed, answer);
}

} // namespace foundry

using namespace foundry;

extern "C" {

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    CUresult result;
    {
        Inside inside;
        result = DRIVER(cuGetProcAddress, symbol, pfn, cudaVersion, flags);
    }
    if (result != CUDA_SUCCESS || !pfn || !symbol) return result;
    void *routed = route_address(*pfn, symbol);
    if (routed != *pfn) {
        *pfn = routed;
        count(counters.doors_entry_point);
    }
    return result;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus) {
    CUresult result;
    {
        Inside inside;
        result = DRIVER(cuGetProcAddress_v2, symbol, pfn, cudaVersion, flags, symbolStatus);
    }
    if (result != CUDA_SUCCESS || !pfn || !symbol) return result;
    void *routed = route_address(*pfn, symbol);
    if (routed != *pfn) {
        *pfn = routed;
        count(counters.doors_entry_point);
    }
    return result;
}

} // extern "C"
