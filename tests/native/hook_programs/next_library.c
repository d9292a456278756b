/* A third library that wraps a C function and finds the next one by RTLD_NEXT, and one of the driver's in the same way.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

pid_t getppid(void) {
    pid_t (*next)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "getppid");
    return next == getppid ? -1 : next();
}

void *cudnnCreate(void) {
    return 0;
}

void *next_driver(const char *name) {
    return dlsym(RTLD_NEXT, name);
}
