/* A thousand forks beside threads that instantiate graphs, allocate, and ask the hook's C interface. Each child uses
 * all of them itself: the driver refuses, nothing hangs. argv[1] = how many forks. */
#define _GNU_SOURCE
#include "interface.h"
#include "program.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { child_seconds = 20 }; /* SIGALRM turns a hang into a status */

static CUcontext context;
static int stop;

static int stopped(void) {
    return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *instantiate(void *unused) {
    (void)unused;
    CUdeviceptr data;
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&data, 4096));
    while (!stopped()) {
        CUgraph graph;
        CUgraphNode node;
        CUgraphExec exec;
        CUDA_MEMSET_NODE_PARAMS set = {data, 0, 9, 4, 4, 1};
        MUST(cuGraphCreate(&graph, 0));
        MUST(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
        MUST(cuGraphInstantiate(&exec, graph, 0));
        MUST(cuGraphLaunch(exec, NULL));
        MUST(cuGraphExecDestroy(exec));
        MUST(cuGraphDestroy(graph));
    }
    return NULL;
}

static void *allocate(void *unused) {
    (void)unused;
    MUST(cuCtxSetCurrent(context));
    while (!stopped()) {
        CUdeviceptr address;
        MUST(cuMemAlloc(&address, 3 << 20));
        MUST(cuMemFree(address));
    }
    return NULL;
}

static void ask(int number) {
    char key[32];
    snprintf(key, sizeof key, "%d", number);
    if (foundry.mode() == 2 || foundry.find) foundry.find("none", key);
    foundry.begin("none", key);
    foundry.end(NULL);
}

static void *ask_on(void *unused) {
    (void)unused;
    for (int number = 0; !stopped(); ++number) ask(number % 5000);
    return NULL;
}

static int child(int number) {
    CUdeviceptr address;
    CUgraph graph;
    alarm(child_seconds);
    ask(number);
    foundry.commit();
    int refused = cuInit(0) && cuMemAlloc(&address, 100) && cuGraphCreate(&graph, 0);
    return refused ? 0 : 1;
}

int main(int count, char **arguments) {
    void *(*work[])(void *) = {instantiate, instantiate, allocate, ask_on};
    pthread_t threads[4];
    int failed = 0;
    if (count < 2) return 2;
    find_interface();
    context = primary_context();
    for (int index = 0; index < 4; ++index) pthread_create(&threads[index], NULL, work[index], NULL);
    for (int number = 0; number < atoi(arguments[1]); ++number) {
        pid_t made = fork();
        int status = -1;
        if (!made) {
            int code = child(number);
            if (number % 2) _exit(code);
            exit(code);
        }
        failed += made < 0 || waitpid(made, &status, 0) != made || status != 0;
        if (failed) {
            SAY("child %d ends with status %#x", number, status);
            break;
        }
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int index = 0; index < 4; ++index) pthread_join(threads[index], NULL);
    SAY("failed %d", failed);
    return failed != 0;
}
