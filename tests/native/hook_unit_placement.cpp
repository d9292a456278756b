// Where the hook puts allocations in an arena.
#include "hook_unit.h"

#include "hook/arena.h"
#include "hook/placement.h"

#include <cstring>
#include <map>
#include <vector>

using namespace foundry;

namespace {

struct Held {
    Place place;
    uint64_t size;
};

// Random requests against a plain model: nothing overlaps, everything comes back, the same calls give the same places.
void run_placement(unsigned seed, std::vector<uint64_t> *places) {
    constexpr uint64_t size = 64 * granule_bytes;
    Placement placement(size);
    std::map<uint64_t, Held> held;
    auto random = [&seed] { return seed = seed * 1103515245 + 12345, seed >> 8; };
    for (int round = 0; round < 4000; ++round) {
        if (held.empty() || random() % 100 < 55) {
            uint64_t wanted = random() % 4 ? 1 + random() % (200 << 10) : 1 + random() % (12 * granule_bytes);
            Place place;
            if (!placement.take(wanted, &place)) continue;
            CHECK(place.taken >= wanted && place.offset % small_alignment == 0 && place.offset + place.taken <= size);
            if (place.taken >= granule_bytes) CHECK(place.offset % granule_bytes == 0);
            auto next = held.lower_bound(place.offset);
            CHECK(next == held.end() || place.offset + place.taken <= next->first);
            CHECK(next == held.begin() || std::prev(next)->first + std::prev(next)->second.place.taken <= place.offset);
            if (place.opens && random() % 10 == 0) {
                placement.undo(place);
                continue;
            }
            if (place.opens) placement.opened(place);
            held[place.offset] = {place, wanted};
            places->push_back(place.offset);
        } else {
            auto chosen = std::next(held.begin(), random() % held.size());
            uint64_t begin, bytes;
            if (placement.give(chosen->second.place.offset, chosen->second.place.taken, &begin, &bytes))
                placement.released(begin, bytes);
            held.erase(chosen);
        }
    }
    while (!held.empty()) {
        uint64_t begin, bytes;
        Place place = held.begin()->second.place;
        if (placement.give(place.offset, place.taken, &begin, &bytes)) placement.released(begin, bytes);
        held.erase(held.begin());
    }
    // At most one page stays open: everything else is one piece again.
    Place whole;
    CHECK(placement.take(size - 8 * granule_bytes, &whole) || placement.take(size / 2 - granule_bytes, &whole));
}

uint64_t take(Placement &placement, uint64_t size) {
    Place place;
    CHECK(placement.take(size, &place));
    if (place.opens) placement.opened(place);
    return place.offset;
}

} // namespace

void test_placement() {
    for (unsigned seed = 1; seed < 30; ++seed) {
        std::vector<uint64_t> first, second;
        run_placement(seed, &first);
        run_placement(seed, &second);
        CHECK(first == second && !first.empty());
    }
    Placement placement(4 * granule_bytes);
    Place place;
    CHECK(!placement.take(UINT64_MAX, &place));
    CHECK(!placement.take(5 * granule_bytes, &place));
    CHECK(placement.take(4 * granule_bytes, &place) && place.offset == 0);
    CHECK(!placement.take(1, &place));
}

void test_claims() {
    // What was captured: a, b, c small in one page, then a large one, then small ones that open a second page.
    Placement captured(64 * granule_bytes);
    uint64_t a = take(captured, 700 << 10), b = take(captured, 600 << 10), c = take(captured, 5000);
    uint64_t large = take(captured, 3 << 20), d = take(captured, 900 << 10);

    // The restored program never makes b and the large one; with their places claimed the others come where they were.
    Placement restored(64 * granule_bytes);
    CHECK(restored.claim(b, 600 << 10));
    CHECK(restored.claim(large, 3 << 20));
    CHECK(!restored.claim(b + 512, 512) && !restored.claim(large + granule_bytes, granule_bytes));
    CHECK(take(restored, 700 << 10) == a);
    CHECK(take(restored, 5000) == c);
    CHECK(take(restored, 900 << 10) == d);
    CHECK(!restored.claim(a, 512));

    // A page that holds claims only is no room for large ones.
    Placement page(2 * granule_bytes);
    CHECK(page.claim(granule_bytes + 1024, 512));
    CHECK(take(page, granule_bytes) == 0);
    Place place;
    CHECK(!page.take(granule_bytes, &place));
    CHECK(take(page, 1024) == granule_bytes);
    CHECK(take(page, 1024) == granule_bytes + 1536);
    uint64_t begin, size;
    CHECK(!page.give(granule_bytes, 1024, &begin, &size) && !page.give(granule_bytes + 1536, 1024, &begin, &size));
    CHECK(!page.claim(2 * granule_bytes, 512) && !page.claim(0, 0) && !page.claim(UINT64_MAX - 100, 512));
}
