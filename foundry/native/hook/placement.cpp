#include "placement.h"

#include <algorithm>

#include "arena.h"

namespace foundry {
namespace {

uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}
uint64_t page_of(uint64_t offset) {
    return offset / granule_bytes * granule_bytes;
}

} // namespace

Placement::Placement(uint64_t size) {
    granules_.emplace(0, size / granule_bytes * granule_bytes);
}

uint64_t Placement::taken_for(uint64_t size) {
    return size < small_limit ? round_up(size, small_alignment) : round_up(size, granule_bytes);
}

Placement::Page Placement::new_page() {
    Page page;
    page.free.emplace(0, granule_bytes);
    return page;
}

void Placement::insert(Extents &extents, uint64_t offset, uint64_t size) {
    auto next = extents.upper_bound(offset);
    if (next != extents.end() && offset + size == next->first) {
        size += next->second;
        next = extents.erase(next);
    }
    if (next != extents.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == offset) {
            before->second += size;
            return;
        }
    }
    extents.emplace(offset, size);
}

bool Placement::remove(Extents &extents, uint64_t offset, uint64_t size) {
    auto found = extents.upper_bound(offset);
    if (found == extents.begin()) return false;
    --found;
    uint64_t begin = found->first, end = begin + found->second;
    if (offset + size > end) return false;
    extents.erase(found);
    if (begin < offset) extents.emplace(begin, offset - begin);
    if (offset + size < end) extents.emplace(offset + size, end - offset - size);
    return true;
}

bool Placement::first_fit(Extents &extents, uint64_t size, uint64_t *offset) {
    for (auto &[begin, room] : extents)
        if (room >= size) {
            *offset = begin;
            return remove(extents, begin, size);
        }
    return false;
}

bool Placement::fits(const Page &page, uint64_t size) {
    return std::any_of(page.free.begin(), page.free.end(),
                       [size](const auto &extent) { return extent.second >= size; });
}

bool Placement::take(uint64_t size, Place *place) {
    if (size > UINT64_MAX - granule_bytes) return false;
    *place = {};
    place->taken = taken_for(size);
    if (size < small_limit) return take_small(place->taken, place);
    return first_fit(granules_, place->taken, &place->offset);
}

bool Placement::take_small(uint64_t size, Place *place) {
    for (auto &[begin, page] : pages_) {
        uint64_t offset;
        if (page.used + size > granule_bytes || !first_fit(page.free, size, &offset)) continue;
        if (page.used == 0) --empty_pages_;
        page.used += size;
        place->offset = begin + offset;
        return true;
    }
    auto claimed =
        std::find_if(claimed_.begin(), claimed_.end(), [size](const auto &entry) { return fits(entry.second, size); });
    uint64_t begin;
    Page page;
    if (claimed != claimed_.end() && (granules_.empty() || claimed->first < granules_.begin()->first)) {
        begin = claimed->first;
        page = std::move(claimed->second);
        claimed_.erase(claimed);
    } else if (first_fit(granules_, granule_bytes, &begin)) {
        page = new_page();
    } else {
        return false;
    }
    uint64_t offset = 0;
    first_fit(page.free, size, &offset);
    page.used += size;
    opening_.emplace(begin, std::move(page));
    place->offset = begin + offset;
    place->opens = true;
    return true;
}

void Placement::opened(const Place &place) {
    auto page = opening_.find(page_of(place.offset));
    if (page == opening_.end()) return;
    pages_.emplace(page->first, std::move(page->second));
    opening_.erase(page);
}

void Placement::undo(const Place &place) {
    if (!place.opens) {
        uint64_t begin, size;
        if (give(place.offset, place.taken, &begin, &size)) released(begin, size);
        return;
    }
    auto page = opening_.find(page_of(place.offset));
    if (page == opening_.end()) return;
    page->second.used -= place.taken;
    insert(page->second.free, place.offset - page->first, place.taken);
    if (page->second.claimed)
        claimed_.emplace(page->first, std::move(page->second));
    else
        insert(granules_, page->first, granule_bytes);
    opening_.erase(page);
}

bool Placement::give(uint64_t offset, uint64_t taken, uint64_t *begin, uint64_t *size) {
    if (taken >= granule_bytes) {
        *begin = offset;
        *size = taken;
        return true;
    }
    auto page = pages_.find(page_of(offset));
    if (page == pages_.end()) return false;
    page->second.used -= taken;
    insert(page->second.free, offset - page->first, taken);
    if (page->second.used) return false;
    // One empty page stays mapped, so that a program that makes and frees one small buffer does not map each time.
    if (empty_pages_ == 0) {
        ++empty_pages_;
        return false;
    }
    *begin = page->first;
    *size = granule_bytes;
    pages_.erase(page);
    return true;
}

void Placement::released(uint64_t begin, uint64_t size) {
    insert(granules_, begin, size);
}

bool Placement::claim(uint64_t offset, uint64_t size) {
    uint64_t end = round_up(offset + size, small_alignment);
    offset = offset / small_alignment * small_alignment;
    uint64_t first = page_of(offset), last = page_of(end - 1);
    if (size == 0 || end <= offset) return false;
    if (size >= small_limit || first != last) return remove(granules_, first, last + granule_bytes - first);

    for (Pages *pages : {&pages_, &claimed_, &opening_}) {
        auto page = pages->find(first);
        if (page == pages->end()) continue;
        bool empty = page->second.used == 0;
        if (!remove(page->second.free, offset - first, end - offset)) return false;
        if (empty && pages == &pages_) --empty_pages_;
        page->second.used += end - offset;
        page->second.claimed = true;
        return true;
    }
    if (!remove(granules_, first, granule_bytes)) return false;
    Page page = new_page();
    remove(page.free, offset - first, end - offset);
    page.used = end - offset;
    page.claimed = true;
    claimed_.emplace(first, std::move(page));
    return true;
}

} // namespace foundry
