// Events: graph nodes name them by handle, a restore makes them anew from their flags. That goes unnoticed only where
// the program has no handle left, so their end is told, too.
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
    CUresult result = DRIVER(cuEventDestroy_v2, hEvent);
    if (result == CUDA_SUCCESS && armed()) Frame(FOUNDRY_EVENT_EVENT_GONE).handle(hEvent).write();
    return result;
}

} // extern "C"
