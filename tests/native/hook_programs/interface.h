/* The C interface of the hook, found as a program finds it; without the hook, what a program does without it. */
#ifndef FOUNDRY_TESTS_INTERFACE_H
#define FOUNDRY_TESTS_INTERFACE_H

#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>

typedef struct foundry_graph foundry_graph;

static struct {
    int (*mode)(void);
    int (*scratch_begin)(const char *);
    int (*scratch_end)(void);
    int (*begin)(const char *, const char *);
    int (*end)(const char *);
    foundry_graph *(*find)(const char *, const char *);
    int (*wait)(foundry_graph *);
    CUgraphExec (*exec)(foundry_graph *);
    int (*launch)(foundry_graph *, void *);
    int (*commit)(void);
    const char *(*reason)(void);
} foundry;

static int foundry_off(void) {
    return 0;
}
static int foundry_off_name(const char *name) {
    return !name;
}
static int foundry_off_names(const char *set, const char *key) {
    return !set || !key;
}

static void find_interface(void) {
    foundry.mode = foundry.scratch_end = foundry.commit = foundry_off;
    foundry.scratch_begin = foundry.end = foundry_off_name;
    foundry.begin = foundry_off_names;
    if (!dlsym(RTLD_DEFAULT, "foundry_mode")) return;
    *(void **)&foundry.mode = dlsym(RTLD_DEFAULT, "foundry_mode");
    *(void **)&foundry.scratch_begin = dlsym(RTLD_DEFAULT, "foundry_scratch_begin");
    *(void **)&foundry.scratch_end = dlsym(RTLD_DEFAULT, "foundry_scratch_end");
    *(void **)&foundry.begin = dlsym(RTLD_DEFAULT, "foundry_graph_begin");
    *(void **)&foundry.end = dlsym(RTLD_DEFAULT, "foundry_graph_end");
    *(void **)&foundry.find = dlsym(RTLD_DEFAULT, "foundry_graph_find");
    *(void **)&foundry.wait = dlsym(RTLD_DEFAULT, "foundry_graph_wait");
    *(void **)&foundry.exec = dlsym(RTLD_DEFAULT, "foundry_graph_exec");
    *(void **)&foundry.launch = dlsym(RTLD_DEFAULT, "foundry_graph_launch");
    *(void **)&foundry.commit = dlsym(RTLD_DEFAULT, "foundry_commit");
    *(void **)&foundry.reason = dlsym(RTLD_DEFAULT, "foundry_reason");
}

#endif
