// The exported symbols, one a row of the list.
#include "entry.h"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

#define FN(family, symbol, since, capture, restore, parameters, arguments)                                             \
    SIM_EXPORT CUresult CUDAAPI symbol parameters {                                                                    \
        return sim::enter(sim::Row::symbol, false, [&] { return sim::symbol arguments; });                             \
    }
#define FN_STREAM(family, symbol, suffix, since, capture, restore, parameters, arguments)                              \
    FN(family, symbol, since, capture, restore, parameters, arguments)                                                 \
    SIM_EXPORT CUresult CUDAAPI symbol##_##suffix parameters {                                                         \
        return sim::enter(sim::Row::symbol##_##suffix, true, [&] { return sim::symbol arguments; });                   \
    }
#include "../table/driver_functions.def"

// Present in no real driver: how the hook and the reports know that they talk to the simulator.
SIM_EXPORT const char *foundry_sim_version(void) {
    return "1";
}

namespace sim {

const RowInfo rows[] = {
#define FN(family, symbol, since, capture, restore, parameters, arguments)                                             \
    {#symbol, since, reinterpret_cast<void *>(&::symbol)},
#include "../table/driver_functions.def"
    {nullptr, 0, nullptr}};

} // namespace sim
