// The bodies of all functions that are forwarded unchanged, and of those that are forwarded with a note.
#include "call.h"
#include "note.h"

#define FOUNDRY_FORWARD(symbol, parameters, arguments)                                                                 \
    CUresult symbol parameters {                                                                                       \
        auto *driver_function = foundry::driver_entry(foundry::real.symbol);                                           \
        return driver_function ? driver_function arguments : foundry::driver_missing();                                \
    }
#define FOUNDRY_BODY_pass(symbol, parameters, arguments) FOUNDRY_FORWARD(symbol, parameters, arguments)
#define FOUNDRY_BODY_flag(symbol, parameters, arguments)                                                               \
    CUresult symbol parameters {                                                                                       \
        auto *driver_function = foundry::driver_entry(foundry::real.symbol);                                           \
        if (!driver_function) return foundry::driver_missing();                                                        \
        CUresult driver_result = driver_function arguments;                                                            \
        if (driver_result == CUDA_SUCCESS) foundry::note_flagged(foundry::row_##symbol);                               \
        return driver_result;                                                                                          \
    }
#define FOUNDRY_BODY_record(symbol, parameters, arguments)
#define FOUNDRY_BODY_own(symbol, parameters, arguments)
#define FOUNDRY_BODY_resolve(symbol, parameters, arguments)

extern "C" {
#define FN(family, symbol, since, capture, restore, parameters, arguments)                                             \
    FOUNDRY_BODY_##capture(symbol, parameters, arguments)
#include "driver_functions.def"
}
