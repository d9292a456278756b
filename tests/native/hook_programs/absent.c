/* A program that would use a driver if there were one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

extern int cuInit(unsigned) __attribute__((weak));

int main(void) {
    printf("default %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
    printf("error %d\n", dlerror() != NULL);
    void *self = dlopen(NULL, RTLD_NOW);
    printf("self %d\n", dlsym(self, "cuInit") != NULL);
    if (cuInit) printf("call %d\n", cuInit(0));
    return 7;
}
