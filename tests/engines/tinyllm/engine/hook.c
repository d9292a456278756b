#include "hook.h"

#include <stdio.h>

#include "capi/foundry.h"

void hook_commit(void) {
    if (foundry_commit()) fprintf(stderr, "tinyllm: foundry: commit: %s\n", foundry_reason());
}

uint64_t hook_range_base(void) {
    return foundry_range_base(0);
}

uint64_t hook_counter(const char *name) {
    return foundry_counter(name);
}

const char *hook_mode(void) {
    static const char *const names[] = {"off", "capture", "restore"};
    return names[foundry_mode()];
}
