// How the exported bodies reach the driver.
#ifndef FOUNDRY_TABLE_CALL_H
#define FOUNDRY_TABLE_CALL_H

#include "real.h"
#include "row.h"

namespace foundry {

// The driver's function, bound on first use; null where the driver lacks it or there is no driver.
template <typename Function> inline Function driver_entry(Function &member) {
    if (Function function = member) [[likely]]
        return function;
    bind_driver(nullptr);
    return member;
}

// What a call answers that no driver function can take: CUDA_ERROR_NO_DEVICE without libcuda, else
// CUDA_ERROR_NOT_SUPPORTED.
CUresult driver_missing();

} // namespace foundry

// Calls the driver function of that row.
#define DRIVER(symbol, ...)                                                                                            \
    ([&]() -> CUresult {                                                                                               \
        auto *driver_function = ::foundry::driver_entry(::foundry::real.symbol);                                       \
        return driver_function ? driver_function(__VA_ARGS__) : ::foundry::driver_missing();                           \
    }())

#endif
