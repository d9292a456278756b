// What no family defines. Weak, so that a family's definition takes its place.
#include "entry.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace sim {

#define FN(family, symbol, since, capture, restore, parameters, arguments)                                             \
    __attribute__((weak)) CUresult symbol parameters {                                                                 \
        return CUDA_ERROR_NOT_SUPPORTED;                                                                               \
    }
#define FN_STREAM(family, symbol, suffix, since, capture, restore, parameters, arguments)                              \
    FN(family, symbol, since, capture, restore, parameters, arguments)
#include "../table/driver_functions.def"

} // namespace sim
