// The ways by which a program comes to a driver function's address.
#ifndef FOUNDRY_HOOK_DOORS_H
#define FOUNDRY_HOOK_DOORS_H

namespace foundry {

// Answers a look-up of a name that begins with cu[A-Z]. False: not ours to answer, the C library's dlsym must, called
// from the same place as the program called it. `caller` is the return address of the program's call.
bool door_dlsym(void *handle, const char *name, const void *caller, void **answer);

// What a program gets for an address that the driver gave it for `name`: the hook of the row with that driver address,
// or the address itself.
void *route_address(void *address, const char *name);

} // namespace foundry

#endif
