// Stream-ordered memory pools.
#pragma once

#include "regions.h"

namespace sim {

struct Pool {
    CUmemoryPool handle = nullptr;
    int device = 0;
    bool is_default = false;
    CUmemPoolProps properties = {};
    std::uint64_t release_threshold = 0;
    int reuse[3] = {1, 1, 1};
    std::uint64_t used = 0, used_high = 0;
    std::uint64_t reserved_high = 0;
    std::map<int, CUmemAccess_flags> access;
};

Table<CUmemoryPool, Pool> &pools();
std::shared_ptr<Pool> make_pool(int device);
Pool *find_pool(CUmemoryPool pool);

// Memory of a pool, taken and given back at once: the simulator's streams hold no work in flight.
CUresult take_pool_memory(Pool &pool, std::uint64_t size, CUcontext context, CUdeviceptr *address);

} // namespace sim
