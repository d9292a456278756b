#include "row.h"

#include <string.h>

#include <algorithm>
#include <array>

#include "real.h"

namespace foundry {

RealDriver real;

const Row rows[row_count] = {
#define FN(family, symbol, since, capture, restore, parameters, arguments)                                             \
    {#symbol,                                                                                                          \
     #family,                                                                                                          \
     since,                                                                                                            \
     Treatment::capture,                                                                                               \
     Treatment::restore,                                                                                               \
     reinterpret_cast<void *>(&::symbol),                                                                              \
     reinterpret_cast<void **>(&real.symbol)},
#include "driver_functions.def"
};

namespace {

constexpr const char *row_names[row_count] = {
#define FN(family, symbol, since, capture, restore, parameters, arguments) #symbol,
#include "driver_functions.def"
};

constexpr int compare(const char *left, const char *right) {
    while (*left && *left == *right) ++left, ++right;
    return static_cast<unsigned char>(*left) - static_cast<unsigned char>(*right);
}

constexpr auto names_in_order = [] {
    std::array<uint16_t, row_count> order{};
    for (uint16_t index = 0; index < row_count; ++index) order[index] = index;
    std::sort(order.begin(), order.end(),
              [](uint16_t a, uint16_t b) { return compare(row_names[a], row_names[b]) < 0; });
    return order;
}();

constexpr bool names_are_distinct() {
    for (size_t index = 1; index < names_in_order.size(); ++index)
        if (compare(row_names[names_in_order[index - 1]], row_names[names_in_order[index]]) == 0) return false;
    return true;
}
static_assert(names_are_distinct(), "a driver function is listed twice");

} // namespace

const char *treatment_name(Treatment treatment) {
    switch (treatment) {
    case Treatment::pass:
        return "pass";
    case Treatment::record:
        return "record";
    case Treatment::own:
        return "own";
    case Treatment::flag:
        return "flag";
    case Treatment::resolve:
        return "resolve";
    }
    return "";
}

const Row *row_by_name(const char *name) {
    auto found =
        std::lower_bound(names_in_order.begin(), names_in_order.end(), name,
                         [](uint16_t index, const char *wanted) { return strcmp(row_names[index], wanted) < 0; });
    if (found == names_in_order.end() || strcmp(row_names[*found], name) != 0) return nullptr;
    return &rows[*found];
}

} // namespace foundry
