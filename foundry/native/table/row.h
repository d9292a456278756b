// Rows: what the hook knows of each driver function, and the way from an address to a row.
#ifndef FOUNDRY_TABLE_ROW_H
#define FOUNDRY_TABLE_ROW_H

#include <stddef.h>
#include <stdint.h>

namespace foundry {

enum class Treatment : uint8_t { pass, record, own, flag, resolve };

enum RowId : uint16_t {
#define FN(family, symbol, since, capture, restore, parameters, arguments) row_##symbol,
#include "driver_functions.def"
    row_count
};

struct Row {
    const char *name;
    const char *family;
    uint32_t since; // 1000 * major + 10 * minor
    Treatment capture;
    Treatment restore;
    void *hook;  // our exported body
    void **real; // the member of `real`
};

extern const Row rows[row_count];

const char *treatment_name(Treatment treatment);

// The row of that exact exported name, or null.
const Row *row_by_name(const char *name);

// The row whose driver address or hook address this is, or null. Valid after bind_driver(); lock-free.
const Row *row_by_address(const void *address);

enum class Bind : uint8_t {
    unbound, // not tried yet
    bound,   // `real` is filled
    absent,  // there is no libcuda in this process
    refused  // the driver contradicts the list; bind_problem() says how. `real` is filled, the hook must stay inert.
};

// Fills `real` from the libcuda that the process has loaded (`library` = a dlopen handle, or null to find it by its
// soname). Idempotent, any thread, makes no driver call except cuDriverGetVersion and cuGetProcAddress. Returns the
// state after it; `unbound` if this thread is in it already, as when the driver is one that looks up another.
Bind bind_driver(void *library);
bool in_bind();
Bind bind_state();

// Why the state is `refused`, else "". Names each function that a driver of this version should have and lacks.
const char *bind_problem();

// cuDriverGetVersion of the bound driver, 0 before.
int driver_version();
// True if the bound driver is the simulator.
bool driver_simulated();
// The bound driver's file.
const char *driver_path();
// True if the address lies in the bound driver's own mapped code.
bool in_driver(const void *address);

} // namespace foundry

#endif
