/* A race in the program, between calls that take the simulator's lock and none of the hook's: if it is not reported,
 * then none would be. */
#define _GNU_SOURCE
#include "program.h"

#include <pthread.h>

static CUcontext context;
static int unguarded;

static void *work(void *unused) {
    MUST(cuCtxSetCurrent(context));
    for (int number = 0; number < 50; ++number) {
        size_t free_bytes, total;
        MUST(cuMemGetInfo(&free_bytes, &total));
        ++unguarded;
        MUST(cuMemGetInfo(&free_bytes, &total));
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    context = primary_context();
    for (int index = 0; index < 2; ++index) pthread_create(&threads[index], NULL, work, NULL);
    for (int index = 0; index < 2; ++index) pthread_join(threads[index], NULL);
    SAY("counted %d", unguarded);
    return 0;
}
