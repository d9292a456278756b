/* One thread opens and closes argv[1], whose constructor looks the driver up, while main works and ends. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>

static void *open_and_close(void *path) {
    for (;;) {
        void *library = dlopen(path, RTLD_NOW);
        if (library) dlclose(library);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    pthread_t thread;
    primary_context();
    pthread_create(&thread, NULL, open_and_close, arguments[1]);
    CUdeviceptr address;
    MUST(cuMemAlloc(&address, 100));
    return 0;
}
