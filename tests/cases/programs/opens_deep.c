/* Opens the library argv[1] with RTLD_DEEPBIND, after some work of its own. */
#define _GNU_SOURCE
#include "worker.h"

int main(int count, char **arguments) {
    if (count < 2) return 2;
    work("program", 4);
    void *engine = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
    int (*works)(void) = engine ? (int (*)(void))dlsym(engine, "engine_works") : NULL;
    return works ? works() : 3;
}
