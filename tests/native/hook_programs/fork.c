/* argv[1] = before: the child alone uses the driver. after: parent first, the child gets the driver's refusal. loop:
 * fork while another thread allocates. */
#include "program.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;
static CUcontext context;

static void *churn(void *unused) {
    (void)unused;
    MUST(cuCtxSetCurrent(context));
    while (!stop) {
        CUdeviceptr address;
        MUST(cuMemAlloc(&address, 3 << 20));
        MUST(cuMemFree(address));
    }
    return NULL;
}

static int wait_for(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    CUdeviceptr address;
    if (!strcmp(arguments[1], "before")) {
        pid_t child = fork();
        if (!child) {
            primary_context();
            MUST(cuMemAlloc(&address, 100));
            SAY("child %llx", address);
            return 0;
        }
        SAY("status %d", wait_for(child));
        return 0;
    }
    context = primary_context();
    MUST(cuMemAlloc(&address, 100));
    if (!strcmp(arguments[1], "after")) {
        pid_t child = fork();
        if (!child) {
            CUdeviceptr other;
            SAY("init %d", cuInit(0));
            SAY("alloc %d", cuMemAlloc(&other, 100));
            SAY("free %d", cuMemFree(address));
            return 0;
        }
        SAY("status %d", wait_for(child));
        MUST(cuMemFree(address));
        return 0;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, churn, NULL);
    int failed = 0;
    for (int round = 0; round < 300; ++round) {
        pid_t child = fork();
        if (!child) {
            CUdeviceptr other;
            cuMemAlloc(&other, 100);
            cuInit(0);
            _exit(0);
        }
        failed += wait_for(child) != 0;
    }
    stop = 1;
    pthread_join(thread, NULL);
    SAY("failed %d", failed);
    return 0;
}
