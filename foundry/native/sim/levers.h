// What a test may turn: read from the environment once, when the first driver function is called.
#pragma once

#include "entry.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sim {

struct Levers {
    int version = 13000;                     // FOUNDRY_SIM_VERSION
    std::uint64_t seed = 0;                  // FOUNDRY_SIM_SEED, else entropy
    std::string gpu;                         // FOUNDRY_SIM_GPU: model name
    int major = 9, minor = 0;                //   and compute capability
    int multiprocessors = 132;               //   and size
    int devices = 1;                         // FOUNDRY_SIM_DEVICES
    std::optional<std::uint64_t> memory;     // FOUNDRY_SIM_MEMORY: bytes of each device that this process may take
    std::string report;                      // FOUNDRY_SIM_REPORT: the file that report.cpp writes
    bool eager = false;                      // CUDA_MODULE_LOADING=EAGER
    std::optional<std::vector<int>> visible; // CUDA_VISIBLE_DEVICES
};

const Levers &levers();

// FOUNDRY_SIM_MASK names the function, or its version is newer than the simulated driver's.
bool absent(Row row);

// The error that FOUNDRY_SIM_FAIL or FOUNDRY_SIM_STICKY wants of this call of the function, after the time that
// FOUNDRY_SIM_HANG wants; counts the call. Not with the lock: what hangs must not stop the others.
CUresult injected_failure(Row row);

// How often the function was called so far.
long calls_of(Row row);

// The next number of the seeded sequence. Callers hold the lock.
std::uint64_t random_number();

} // namespace sim
