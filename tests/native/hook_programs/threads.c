/* Eight threads allocate, write, check and free at once. */
#include "program.h"

#include <pthread.h>

static CUcontext context;

static void *work(void *number) {
    MUST(cuCtxSetCurrent(context));
    unsigned seed = (unsigned)(uintptr_t)number * 7919 + 1;
    CUdeviceptr held[16] = {0};
    unsigned value[16] = {0};
    size_t size[16] = {0};
    for (int round = 0; round < 400; ++round) {
        seed = seed * 1103515245 + 12345;
        int slot = seed >> 16 & 15;
        if (held[slot]) {
            unsigned first, last;
            MUST(cuMemcpyDtoH(&first, held[slot], 4));
            MUST(cuMemcpyDtoH(&last, held[slot] + size[slot] - 4, 4));
            if (first != value[slot] || last != value[slot]) {
                SAY("overwritten");
                exit(1);
            }
            MUST(cuMemFree(held[slot]));
            held[slot] = 0;
        } else {
            size[slot] = 4 * (1 + (seed >> 8) % ((seed & 64) ? 4096 : 700000));
            value[slot] = seed;
            MUST(cuMemAlloc(&held[slot], size[slot]));
            MUST(cuMemcpyHtoD(held[slot], &seed, 4));
            MUST(cuMemcpyHtoD(held[slot] + size[slot] - 4, &seed, 4));
        }
    }
    for (int slot = 0; slot < 16; ++slot)
        if (held[slot]) MUST(cuMemFree(held[slot]));
    return NULL;
}

int main(void) {
    context = primary_context();
    pthread_t threads[8];
    for (uintptr_t index = 0; index < 8; ++index) pthread_create(&threads[index], NULL, work, (void *)index);
    for (int index = 0; index < 8; ++index) pthread_join(threads[index], NULL);
    SAY("done");
    return 0;
}
