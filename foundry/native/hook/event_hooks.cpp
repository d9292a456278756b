// Events: graph nodes name them by handle, a restore makes them anew from their flags.
#include "../table/call.h"
#include "counters.h"
#include "spool.h"
#include "state.h"

using namespace foundry;

extern "C" {

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    CUresult result = DRIVER(cuEventCreate, phEvent, Flags);
    if (result == CUDA_SUCCESS && armed() && phEvent) {
        count(counters.events_created);
        Frame(FOUNDRY_EVENT_EVENT_CREATED).handle(*phEvent).u32(Flags).write();
    }
    return result;
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
    return DRIVER(cuEventDestroy_v2, hEvent);
}

} // extern "C"
