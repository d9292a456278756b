#include "foundry_capi.h"
#include "reason.h"

namespace {

const char *const lines[] = {
#define FN(family, symbol, since, capture, restore, parameters, arguments)                                             \
    #family " " #symbol " " #since " " #capture " " #restore,
#include "../table/driver_functions.def"
};

} // namespace

FOUNDRY_EXPORT const char *foundry_table_row(unsigned index) {
    return index < sizeof lines / sizeof *lines ? lines[index] : nullptr;
}
