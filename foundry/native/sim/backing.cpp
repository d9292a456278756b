#include "backing.h"

#include "shared_files.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace sim {
namespace {

constexpr std::uint64_t block_size = 2u << 20;
constexpr std::uint64_t small_limit = 1u << 20;
constexpr std::uint64_t small_alignment = 512;
constexpr std::uint64_t spoiled_bytes = 4096;

struct Block {
    std::uint64_t next = 0; // offset of the first byte never handed out
    unsigned live = 0;
};

struct SmallMemory {
    std::map<std::uint64_t, Block> blocks;                      // by base
    std::map<std::uint64_t, std::vector<std::uint64_t>> vacant; // by size
};

SmallMemory &small_memory(const Device &device) {
    static auto *all = new std::map<int, SmallMemory>;
    return (*all)[device.ordinal];
}

std::uint64_t round_up(std::uint64_t size, std::uint64_t unit) {
    return (size + unit - 1) / unit * unit;
}

// By base of the block.
std::map<std::uint64_t, SharedPlace> &shared_blocks() {
    static auto *all = new std::map<std::uint64_t, SharedPlace>;
    return *all;
}

unsigned char read_age(const SharedPlace &shared, std::uint64_t offset) {
    unsigned char age = 0;
    return pread(shared.file, &age, 1, static_cast<off_t>(age_of(shared.block, offset))) == 1 ? age : 0;
}

// Leaves holes where nothing was ever written.
bool copy_pages(const char *pages, std::uint64_t size, int file) {
    constexpr std::uint64_t piece = 64u << 10;
    static const std::vector<char> nothing(piece);
    for (std::uint64_t at = 0; at < size; at += piece)
        if (std::memcmp(pages + at, nothing.data(), piece) != 0 &&
            pwrite(file, pages + at, piece, static_cast<off_t>(at)) != static_cast<ssize_t>(piece))
            return false;
    return true;
}

// Memory at that address is freed, and with it its block if `whole`.
void forget_shared(std::uint64_t base, std::uint64_t address, bool whole) {
    auto found = shared_blocks().find(base);
    if (found == shared_blocks().end()) return;
    const SharedPlace &shared = found->second;
    const auto next = static_cast<unsigned char>(read_age(shared, address - base) + 1);
    if (pwrite(shared.file, &next, 1, static_cast<off_t>(age_of(shared.block, address - base))) != 1) whole = true;
    if (!whole) return;
    close(shared.file);
    shared_blocks().erase(found);
}

CUresult take_block(Device &device, std::uint64_t size, std::uint64_t *address) {
    if (size > device.limit || device.used > device.limit - size) return CUDA_ERROR_OUT_OF_MEMORY;
    void *pages = take_pages(size);
    if (!pages) return CUDA_ERROR_OUT_OF_MEMORY;
    device.used += size;
    *address = reinterpret_cast<std::uint64_t>(pages);
    return CUDA_SUCCESS;
}

} // namespace

void *take_pages(std::uint64_t size) {
    static std::uint64_t next = 0x7c0000000000u - (random_number() % 0x40000u) * block_size;
    size = round_up(size, block_size);
    for (int attempt = 0; attempt < 64; ++attempt) {
        next -= size + (random_number() % 16) * block_size;
        void *wanted = reinterpret_cast<void *>(next);
        void *got = mmap(wanted, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == wanted) return got;
        if (got != MAP_FAILED) munmap(got, size);
    }
    // A process that holds all of that takes what is left.
    void *got =
        mmap(nullptr, size + block_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return nullptr;
    std::uint64_t base = reinterpret_cast<std::uint64_t>(got), aligned = round_up(base, block_size);
    if (aligned > base) munmap(got, aligned - base);
    if (base + block_size > aligned) munmap(reinterpret_cast<void *>(aligned + size), base + block_size - aligned);
    return reinterpret_cast<void *>(aligned);
}

void give_back_pages(void *address, std::uint64_t size) {
    munmap(address, round_up(size, block_size));
}

void spoil(void *address, std::uint64_t size) {
    static const int pattern = static_cast<int>(0x80 | (random_number() & 0x7f));
    std::memset(address, pattern, std::min(size, spoiled_bytes));
}

CUresult take_backing(Device &device, std::uint64_t size, std::uint64_t *address) {
    if (size > (1ull << 46)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (size > small_limit) {
        SIM_TRY(take_block(device, round_up(size, block_size), address));
        spoil(reinterpret_cast<void *>(*address), size);
        return CUDA_SUCCESS;
    }
    size = round_up(size, small_alignment);
    SmallMemory &small = small_memory(device);
    std::vector<std::uint64_t> &vacant = small.vacant[size];
    if (!vacant.empty()) {
        *address = vacant.back();
        vacant.pop_back();
    } else {
        auto fits = [&](auto &entry) { return entry.second.next + size <= block_size; };
        auto block = std::find_if(small.blocks.begin(), small.blocks.end(), fits);
        if (block == small.blocks.end()) {
            std::uint64_t base = 0;
            SIM_TRY(take_block(device, block_size, &base));
            block = small.blocks.emplace(base, Block{}).first;
        }
        *address = block->first + block->second.next;
        block->second.next += size;
    }
    std::prev(small.blocks.upper_bound(*address))->second.live++;
    spoil(reinterpret_cast<void *>(*address), size);
    return CUDA_SUCCESS;
}

std::uint64_t age_of(std::uint64_t block, std::uint64_t offset) {
    return block + offset % block_size / small_alignment;
}

bool share_backing(const Device &device, std::uint64_t address, std::uint64_t size, SharedPlace *place) {
    const bool small = size <= small_limit;
    const std::uint64_t base = small ? std::prev(small_memory(device).blocks.upper_bound(address))->first : address;
    SharedPlace &shared = shared_blocks()[base];
    if (shared.file < 0) {
        shared.block = small ? block_size : round_up(size, block_size);
        void *pages = reinterpret_cast<void *>(base);
        const int file = make_shared_file(device.ordinal, shared.block + block_size / small_alignment);
        const bool copied = file >= 0 && copy_pages(static_cast<const char *>(pages), shared.block, file);
        if (!copied || mmap(pages, shared.block, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != pages) {
            if (file >= 0) close(file);
            shared_blocks().erase(base);
            return false;
        }
        shared.file = file;
    }
    *place = shared;
    place->offset = address - base;
    place->age = read_age(shared, place->offset);
    return true;
}

void give_back_backing(Device &device, std::uint64_t address, std::uint64_t size) {
    if (size > small_limit) {
        size = round_up(size, block_size);
        forget_shared(address, address, true);
        give_back_pages(reinterpret_cast<void *>(address), size);
        device.used -= size;
        return;
    }
    size = round_up(size, small_alignment);
    SmallMemory &small = small_memory(device);
    auto block = std::prev(small.blocks.upper_bound(address));
    small.vacant[size].push_back(address);
    const bool last = --block->second.live == 0;
    forget_shared(block->first, address, last);
    if (!last) return;
    std::uint64_t base = block->first;
    for (auto &[unused, addresses] : small.vacant)
        std::erase_if(addresses, [&](std::uint64_t vacant) { return vacant - base < block_size; });
    give_back_pages(reinterpret_cast<void *>(base), block_size);
    device.used -= block_size;
    small.blocks.erase(block);
}

} // namespace sim
