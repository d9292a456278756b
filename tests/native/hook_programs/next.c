/* RTLD_NEXT means: after the library that asks, not after the hook. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

void *next_driver(const char *name);
void *cudnnCreate(void);

int main(void) {
    printf("parent %d\n", getppid() == syscall(SYS_getppid));
    printf("nothing %d\n", next_driver("cuFooBarNotThere") == NULL);
    printf("symbol %d\n", dlsym(RTLD_DEFAULT, "cudnnCreate") == (void *)cudnnCreate);
    void *missing = dlsym(RTLD_DEFAULT, "no_such_function");
    printf("missing %d %d\n", missing == NULL, dlerror() != NULL);
    return 0;
}
