// Where allocations go within one arena: pure bookkeeping of offsets, without driver and without lock.
//
// Large ones take whole granules; small ones share granules, called pages. Always the first fit from the lowest offset,
// so that one sequence of calls gives one sequence of offsets.
#ifndef FOUNDRY_HOOK_PLACEMENT_H
#define FOUNDRY_HOOK_PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

#include <map>

namespace foundry {

struct Place {
    uint64_t offset = 0;
    uint64_t taken = 0;
    bool opens = false; // a small one whose page is new: map the page, then say opened() or undo()
};

class Placement {
  public:
    explicit Placement(uint64_t size);

    // False: no room.
    bool take(uint64_t size, Place *place);
    // The page of a place that opens one may now serve others.
    void opened(const Place &place);
    // The place could not be mapped; everything is as before take().
    void undo(const Place &place);
    // First half of giving back: true if granules [*begin, *begin + *size) must be unmapped, then released().
    bool give(uint64_t offset, uint64_t taken, uint64_t *begin, uint64_t *size);
    // Second half: unmapped granules may be taken again.
    void released(uint64_t begin, uint64_t size);
    bool claim(uint64_t offset, uint64_t size);

    static uint64_t taken_for(uint64_t size);

  private:
    using Extents = std::map<uint64_t, uint64_t>; // offset -> size, never adjacent
    struct Page {
        Extents free;      // offsets within the page
        uint64_t used = 0; // bytes, claims included
        bool claimed = false;
    };
    using Pages = std::map<uint64_t, Page>;

    static Page new_page();
    static void insert(Extents &extents, uint64_t offset, uint64_t size);
    static bool remove(Extents &extents, uint64_t offset, uint64_t size);
    static bool first_fit(Extents &extents, uint64_t size, uint64_t *offset);
    static bool fits(const Page &page, uint64_t size);
    bool take_small(uint64_t size, Place *place);

    Extents granules_; // free, and no page
    Pages pages_;      // mapped or being so, with room for others
    Pages claimed_;    // hold claims, not in use by the program yet
    Pages opening_;    // taken out until opened()
    uint64_t empty_pages_ = 0;
};

} // namespace foundry

#endif
