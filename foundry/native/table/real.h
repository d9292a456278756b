// The driver's own functions, one member for each row of the list.
//
// Contract: a member is null until bind_driver() succeeded, and for ever where the driver lacks the function. Call a
// driver function only through here (never by its global name, which is the hook's own body), and never with a lock of
// ours held.
#ifndef FOUNDRY_TABLE_REAL_H
#define FOUNDRY_TABLE_REAL_H

#include "cuda_abi.h"

namespace foundry {

struct RealDriver {
#define FN(family, symbol, since, capture, restore, parameters, arguments) decltype(&::symbol) symbol;
#include "driver_functions.def"
};

extern RealDriver real;

} // namespace foundry

#endif
