#include "ipc_imports.h"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <new>
#include <vector>

#include "arena.h"
#include "arena_blocks.h"
#include "counters.h"
#include "ipc_socket.h"
#include "mapping.h"
#include "memory.h"
#include "patience.h"
#include "ranges.h"
#include "spool.h"
#include "state.h"

namespace foundry {
namespace {

enum class Stage : uint8_t { making, standing, closed, ending };

struct Entry {
    IpcHandle handle;
    uint32_t device;
    Stage stage = Stage::making; // closed: no user, and still mapped
    unsigned users = 1;
    IpcImport here{};
    CUdeviceptr base = 0; // of the reservation
    size_t reserved = 0;
    char name[320] = "";
};

std::mutex mutex; // not held across a driver call
std::list<Entry> *entries;
std::atomic<int> standing{0}; // entries, so that most look-ups take no lock
std::atomic<int> waiting{0};  // of them, those that are closed

std::list<Entry> &all() {
    if (!entries) entries = new std::list<Entry>;
    return *entries;
}

const char *arena_name(uint32_t arena) {
    return arena == FOUNDRY_ARENA_MAIN ? "main" : arena == FOUNDRY_ARENA_SCRATCH ? "scratch" : "graph";
}

// Each file's memory side by side, as its owner has it.
const char *map_files(Entry &entry, const IpcAnswer &answer, const std::vector<int> &files, CUresult *result) {
    for (uint32_t index = 0; index < answer.pieces; ++index)
        if (answer.sizes[index] % granule_bytes ||
            __builtin_add_overflow(entry.reserved, answer.sizes[index], &entry.reserved))
            return "its process answers what makes no sense";
    if (answer.offset > entry.reserved || entry.handle.size > entry.reserved - answer.offset)
        return "its process answers what makes no sense";
    *result = real.cuMemAddressReserve(&entry.base, entry.reserved, granule_bytes, 0, 0);
    if (*result != CUDA_SUCCESS) return "no addresses could be reserved";
    CUdeviceptr at = entry.base;
    for (uint32_t index = 0; index < answer.pieces && *result == CUDA_SUCCESS; ++index) {
        CUmemGenericAllocationHandle memory;
        *result =
            real.cuMemImportFromShareableHandle(&memory, reinterpret_cast<void *>(static_cast<intptr_t>(files[index])),
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        if (*result != CUDA_SUCCESS) break;
        *result = map_import(entry.device, at, answer.sizes[index], memory);
        real.cuMemRelease(memory);
        at += answer.sizes[index];
    }
    if (*result == CUDA_SUCCESS) {
        entry.here.address = entry.base + answer.offset;
        entry.here.size = entry.handle.size;
        return nullptr;
    }
    unmap_granules(entry.base, entry.reserved);
    real.cuMemAddressFree(entry.base, entry.reserved);
    return "the driver does not map it";
}

const char *make(Entry &entry, CUresult *result) {
    IpcAnswer answer{};
    std::vector<int> files;
    *result = CUDA_ERROR_MAP_FAILED;
    if (!real.cuMemImportFromShareableHandle || !real.cuMemAddressReserve || !real.cuMemMap)
        return "the driver has no virtual memory management";
    if (const char *problem = ipc_ask(entry.handle, &answer, &files, result)) return problem;
    const char *problem = map_files(entry, answer, files, result);
    for (int file : files) close(file);
    answer.role[sizeof answer.role - 1] = 0;
    snprintf(entry.name, sizeof entry.name, "%s/%u/%s/%llu", answer.role, answer.device, arena_name(answer.arena),
             static_cast<unsigned long long>(answer.ordinal));
    return problem;
}

enum class Claim : uint8_t { opened, mine, busy };

// opened: *entry stands and has one user more. mine: it is new, and the caller makes it. busy: another thread is at it.
Claim claim(const IpcHandle &handle, uint32_t device, CUcontext context, Entry **entry) {
    std::lock_guard<std::mutex> lock(mutex);
    for (Entry &known : all()) {
        if (known.here.context != context || !(known.handle == handle)) continue;
        if (known.stage == Stage::making || known.stage == Stage::ending) return Claim::busy;
        if (known.stage == Stage::closed) waiting.fetch_sub(1);
        known.stage = Stage::standing;
        ++known.users;
        *entry = &known;
        return Claim::opened;
    }
    all().push_back({});
    *entry = &all().back();
    (*entry)->handle = handle;
    (*entry)->device = device;
    (*entry)->here.context = context;
    return Claim::mine;
}

void forget(Entry *entry) {
    std::lock_guard<std::mutex> lock(mutex);
    all().remove_if([entry](const Entry &known) { return &known == entry; });
}

void unmap(Entry *entry) {
    CUresult result = unmap_granules(entry->base, entry->reserved);
    if (result == CUDA_SUCCESS) result = real.cuMemAddressFree(entry->base, entry->reserved);
    if (result != CUDA_SUCCESS)
        finding_once("unmap-failed", "memory of another process at 0x%llx could not be unmapped (CUresult %d)",
                     static_cast<unsigned long long>(entry->here.address), result);
    standing.fetch_sub(1);
    forget(entry);
}

// Unmaps what was closed, where its work may be waited for.
void drain() {
    if (waiting.load(std::memory_order_acquire) == 0 || !fence_begin()) return;
    for (;;) {
        Entry *found = nullptr;
        {
            std::lock_guard<std::mutex> lock(mutex);
            for (Entry &entry : all())
                if (entry.stage == Stage::closed) found = &entry;
            if (found) {
                found->stage = Stage::ending;
                waiting.fetch_sub(1);
            }
        }
        if (!found) break;
        CUresult error;
        if (fence_context(found->here.context, &error)) {
            unmap(found);
            continue;
        }
        // Work that does not end keeps its memory.
        std::lock_guard<std::mutex> lock(mutex);
        found->stage = Stage::closed;
        waiting.fetch_add(1);
        break;
    }
    fence_end();
}

} // namespace

CUresult ipc_open(const IpcHandle &handle, CUdeviceptr *address) {
    CUcontext context = nullptr;
    uint32_t device;
    if (CUresult result = real.cuCtxGetCurrent(&context); result != CUDA_SUCCESS) return result;
    if (!context || !current_device(&device)) return CUDA_ERROR_INVALID_CONTEXT;
    drain();
    Entry *entry = nullptr;
    Claim claimed;
    for (Turns turns; (claimed = claim(handle, device, context, &entry)) == Claim::busy;)
        if (!turns.next()) return CUDA_ERROR_NOT_READY;
    if (claimed == Claim::mine) {
        CUresult result;
        if (const char *problem = make(*entry, &result)) {
            finding_once("ipc-refused", "memory of another process could not be opened (CUresult %d): %s", result,
                         problem);
            forget(entry);
            return result;
        }
        standing.fetch_add(1);
        count_named("allocations_opened", 1);
        std::lock_guard<std::mutex> lock(mutex);
        entry->stage = Stage::standing;
    }
    *address = entry->here.address;
    if (armed()) range_add(FOUNDRY_RANGE_PEER, *address, entry->here.size, 0, entry->name);
    return CUDA_SUCCESS;
}

CUresult ipc_close(CUdeviceptr address, bool *ours) {
    *ours = false;
    if (standing.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
    {
        std::lock_guard<std::mutex> lock(mutex);
        auto found = std::find_if(all().begin(), all().end(), [address](const Entry &entry) {
            return entry.stage == Stage::standing && entry.here.address == address;
        });
        if (found == all().end()) return CUDA_SUCCESS;
        *ours = true;
        if (--found->users) return CUDA_SUCCESS;
        found->stage = Stage::closed;
        waiting.fetch_add(1);
    }
    if (armed()) range_remove(FOUNDRY_RANGE_PEER, address);
    drain();
    return CUDA_SUCCESS;
}

bool ipc_find(CUdeviceptr address, IpcImport *found) {
    if (standing.load(std::memory_order_acquire) == 0) return false;
    std::lock_guard<std::mutex> lock(mutex);
    for (const Entry &entry : all())
        if (entry.stage == Stage::standing && address - entry.here.address < entry.here.size) {
            *found = entry.here;
            return true;
        }
    return false;
}

void ipc_context_gone(CUcontext context) {
    if (standing.load(std::memory_order_acquire) == 0) return;
    for (;;) {
        Entry *found = nullptr;
        {
            std::lock_guard<std::mutex> lock(mutex);
            for (Entry &entry : all())
                if (entry.here.context == context && (entry.stage == Stage::standing || entry.stage == Stage::closed))
                    found = &entry;
            if (!found) return;
            if (found->stage == Stage::closed) waiting.fetch_sub(1);
            found->stage = Stage::ending;
        }
        if (armed()) range_remove(FOUNDRY_RANGE_PEER, found->here.address);
        unmap(found);
    }
}

void ipc_imports_forget() {
    new (&mutex) std::mutex;
    entries = nullptr;
    standing.store(0);
    waiting.store(0);
}

} // namespace foundry
