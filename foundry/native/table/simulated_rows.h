// What the simulator's driver of some version would not have.
#ifndef FOUNDRY_TABLE_SIMULATED_ROWS_H
#define FOUNDRY_TABLE_SIMULATED_ROWS_H

#include <stdio.h>
#include <string.h>

#include "real.h"
#include "real_dlsym.h"
#include "row.h"

namespace foundry {

// The simulator exports every function whatever version it plays; which of them that version has, its entry-point query
// knows.
class SimulatedRows {
  public:
    SimulatedRows(void *library, int version) : version_(version) {
        DlsymFunction look_up = real_dlsym();
        if (look_up(library, "foundry_sim_version"))
            query_ = reinterpret_cast<decltype(&::cuGetProcAddress)>(look_up(library, "cuGetProcAddress"));
    }

    // Whether the driver is the simulator.
    bool present() const { return query_ != nullptr; }

    bool lacks(const Row &row, const void *exported) const {
        if (!query_ || version_ <= 0) return false;
        if (row.since > static_cast<uint32_t>(version_)) return true;
        char name[128];
        snprintf(name, sizeof name, "%s", row.name);
        size_t length = strlen(name);
        bool twin = length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0);
        if (twin) name[length -= 5] = 0;
        if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v') name[length - 3] = 0;
        void *answer = nullptr;
        auto flags = twin ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
        CUresult result = query_(name, &answer, static_cast<int>(row.since), flags);
        return result == CUDA_ERROR_NOT_FOUND || (result == CUDA_SUCCESS && answer != exported);
    }

  private:
    int version_;
    decltype(&::cuGetProcAddress) query_ = nullptr;
};

} // namespace foundry

#endif
