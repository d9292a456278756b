#include "hook.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "capi/foundry_capi.h"
#include "common.h"

#define FUNCTIONS(X)                                                                                                   \
    X(foundry_mode, int, (void))                                                                                       \
    X(foundry_reason, const char *, (void))                                                                            \
    X(foundry_scratch_begin, int, (const char *))                                                                      \
    X(foundry_scratch_end, int, (void))                                                                                \
    X(foundry_graph_begin, int, (const char *, const char *))                                                          \
    X(foundry_graph_end, int, (const char *))                                                                          \
    X(foundry_graph_find, foundry_graph *, (const char *, const char *))                                               \
    X(foundry_graph_metadata, const char *, (const foundry_graph *))                                                   \
    X(foundry_graph_wait, int, (foundry_graph *))                                                                      \
    X(foundry_graph_launch, int, (foundry_graph *, void *))                                                            \
    X(foundry_graph_give_up, void, (foundry_graph *, const char *))                                                    \
    X(foundry_range_base, unsigned long long, (int))                                                                   \
    X(foundry_commit, int, (void))                                                                                     \
    X(foundry_count, void, (const char *, unsigned long long))                                                         \
    X(foundry_counter, unsigned long long, (const char *))

static struct {
    bool looked_for, found;
#define X(name, result, parameters) result(*name) parameters;
    FUNCTIONS(X)
#undef X
} hook;

static bool present(void) {
    if (hook.looked_for) return hook.found;
    hook.looked_for = hook.found = true;
#define X(name, result, parameters)                                                                                    \
    *(void **)&hook.name = dlsym(RTLD_DEFAULT, #name);                                                                 \
    if (!hook.name) hook.found = false;
    FUNCTIONS(X)
#undef X
    return hook.found;
}

static int mode(void) {
    return present() ? hook.foundry_mode() : FOUNDRY_OFF;
}

static void complain(int answer, const char *what) {
    if (answer) fprintf(stderr, "tinyllm: foundry: %s: %s\n", what, hook.foundry_reason());
}

void *hook_find(const char *set, const char *key, const char *metadata) {
    if (mode() != FOUNDRY_RESTORE) return NULL;
    foundry_graph *graph = hook.foundry_graph_find(set, key);
    if (!graph) return complain(FOUNDRY_UNAVAILABLE, key), NULL;
    const char *kept = hook.foundry_graph_metadata(graph);
    if (!kept || strcmp(kept, metadata)) {
        fprintf(stderr, "tinyllm: foundry: %s: captured for `%s`, not for `%s`\n", key, kept ? kept : "", metadata);
        hook.foundry_graph_give_up(graph, "captured for other sizes or addresses");
        return NULL;
    }
    const int answer = hook.foundry_graph_wait(graph);
    complain(answer, key);
    return answer ? NULL : graph;
}

void hook_launch(void *graph, void *stream) {
    const int result = hook.foundry_graph_launch(graph, stream);
    if (result) fail("a restored graph cannot be launched: %d %s", result, hook.foundry_reason());
}

void hook_scratch_begin(const char *name) {
    if (mode() != FOUNDRY_OFF) complain(hook.foundry_scratch_begin(name), name);
}

void hook_scratch_end(void) {
    if (mode() != FOUNDRY_OFF) complain(hook.foundry_scratch_end(), "the end of a phase");
}

void hook_graph_begin(const char *set, const char *key) {
    if (mode() == FOUNDRY_CAPTURE) complain(hook.foundry_graph_begin(set, key), key);
}

void hook_graph_end(const char *metadata) {
    if (mode() == FOUNDRY_CAPTURE) complain(hook.foundry_graph_end(metadata), "the end of a graph");
}

void hook_commit(void) {
    if (mode() != FOUNDRY_OFF) complain(hook.foundry_commit(), "commit");
}

uint64_t hook_range_base(void) {
    return present() ? hook.foundry_range_base(0) : 0;
}

uint64_t hook_counter(const char *name) {
    return present() ? hook.foundry_counter(name) : 0;
}

void hook_count(const char *name, uint64_t add) {
    if (mode() != FOUNDRY_OFF) hook.foundry_count(name, add);
}

const char *hook_mode(void) {
    static const char *const names[] = {"off", "capture", "restore"};
    return names[mode()];
}
