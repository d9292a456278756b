/* foundry.h - the functions of foundry_capi.h, found at run time: nothing to link but -ldl. C89 and C++.
 *
 *     #include <foundry.h>
 *
 *     foundry_graph *graph = foundry_graph_find("decode", "8");
 *
 * Where the process has no hook, or one of another version, each does nothing: the mode is FOUNDRY_OFF, phases,
 * labels and totals are taken as they come, and there are no graphs. So a program calls them without asking first.
 * Included by foundry_embed.h they are those of the engine in the program, where no hook is preloaded.
 *
 * The functions are static: include this where foundry is used, and foundry_capi.h where its types are enough.
 */
#ifndef FOUNDRY_H
#define FOUNDRY_H

#ifdef FOUNDRY_CAPI_H
#error "foundry.h includes foundry_capi.h itself, and must come before it"
#endif
#define FOUNDRY_API static __attribute__((unused))
#include <dlfcn.h>

#include "foundry_capi.h"

#ifdef FOUNDRY_EMBED_H
#define FOUNDRY_WITHOUT_HOOK(name) foundry_embed_entry(name)
#else
#define FOUNDRY_WITHOUT_HOOK(name) ((void *)0)
#endif

/* Elsewhere, as with tcc, an aligned pointer is read and written whole, too. */
#ifdef __GNUC__
#define FOUNDRY_LOAD(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#define FOUNDRY_STORE(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)
#else
#define FOUNDRY_LOAD(place) (*(void *volatile *)(place))
#define FOUNDRY_STORE(place, value) (*(void *volatile *)(place) = (value))
#endif

/* RTLD_DEFAULT is a null pointer, and its name needs _GNU_SOURCE. */
FOUNDRY_API void *foundry_function(void **known, const char *name) {
    union {
        void *address;
        int (*call)(void);
    } version;
    void *found = FOUNDRY_LOAD(known);
    if (!found) {
        version.address = dlsym((void *)0, "foundry_capi_version");
        if (!version.address) version.address = FOUNDRY_WITHOUT_HOOK("foundry_capi_version");
        if (version.address && version.call() == FOUNDRY_CAPI_VERSION) {
            found = dlsym((void *)0, name);
            if (!found) found = FOUNDRY_WITHOUT_HOOK(name);
        }
        if (!found) found = known; /* there is none */
        FOUNDRY_STORE(known, found);
    }
    return found == (void *)known ? (void *)0 : found;
}

#define FOUNDRY_FUNCTION(result, name, parameters, call, otherwise)                                                    \
    FOUNDRY_API result name parameters {                                                                               \
        static void *known;                                                                                            \
        union {                                                                                                        \
            void *address;                                                                                             \
            result(*function) parameters;                                                                              \
        } hook;                                                                                                        \
        hook.address = foundry_function(&known, #name);                                                                \
        if (hook.address) call;                                                                                        \
        otherwise;                                                                                                     \
    }
#define FOUNDRY_ANSWER(result, name, parameters, arguments, otherwise)                                                 \
    FOUNDRY_FUNCTION(result, name, parameters, return hook.function arguments, return otherwise)

FOUNDRY_ANSWER(int, foundry_capi_version, (void), (), 0)
FOUNDRY_ANSWER(int, foundry_mode, (void), (), FOUNDRY_OFF)
FOUNDRY_ANSWER(const char *, foundry_reason, (void), (), "there is no foundry hook in this process")
FOUNDRY_ANSWER(int, foundry_scratch_begin, (const char *name), (name), FOUNDRY_OK)
FOUNDRY_ANSWER(int, foundry_scratch_end, (void), (), FOUNDRY_OK)
FOUNDRY_ANSWER(int, foundry_commit, (void), (), FOUNDRY_OK)
FOUNDRY_ANSWER(int, foundry_graph_begin, (const char *set, const char *key), (set, key), FOUNDRY_OK)
FOUNDRY_ANSWER(int, foundry_graph_end, (const char *metadata), (metadata), FOUNDRY_OK)
FOUNDRY_ANSWER(foundry_graph *, foundry_graph_find, (const char *set, const char *key), (set, key), 0)
FOUNDRY_ANSWER(foundry_graph *, foundry_graph_next, (const char *set, const foundry_graph *graph), (set, graph), 0)
FOUNDRY_ANSWER(const char *, foundry_graph_key, (const foundry_graph *graph), (graph), 0)
FOUNDRY_ANSWER(const char *, foundry_graph_metadata, (const foundry_graph *graph), (graph), 0)
FOUNDRY_ANSWER(int, foundry_graph_wait, (foundry_graph * graph), (graph), FOUNDRY_UNAVAILABLE)
FOUNDRY_ANSWER(int, foundry_graph_launch, (foundry_graph * graph, void *stream), (graph, stream), FOUNDRY_UNAVAILABLE)
FOUNDRY_ANSWER(void *, foundry_graph_exec, (foundry_graph * graph), (graph), 0)
FOUNDRY_FUNCTION(void, foundry_graph_give_up, (foundry_graph * graph, const char *reason), hook.function(graph, reason),
                 (void)0)
FOUNDRY_ANSWER(uint64_t, foundry_range_base, (int device), (device), 0)
FOUNDRY_FUNCTION(void, foundry_count, (const char *name, uint64_t add), hook.function(name, add), (void)0)
FOUNDRY_ANSWER(uint64_t, foundry_counter, (const char *name), (name), 0)
FOUNDRY_ANSWER(int, foundry_image_check, (const char *path), (path), FOUNDRY_UNAVAILABLE)
FOUNDRY_ANSWER(const char *, foundry_table_row, (unsigned index), (index), 0)

#endif
