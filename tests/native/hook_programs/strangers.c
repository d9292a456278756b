/* Preloaded before the hook: the rank that STRANGE names takes everybody for another user. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int getsockopt(int file, int level, int name, void *value, socklen_t *size) {
    int (*next)(int, int, int, void *, socklen_t *) = dlsym(RTLD_NEXT, "getsockopt");
    int result = next(file, level, name, value, size);
    const char *rank = getenv("RANK"), *strange = getenv("STRANGE");
    if (level == SOL_SOCKET && name == SO_PEERCRED && rank && strange && !strcmp(rank, strange))
        ((struct ucred *)value)->uid += 1;
    return result;
}
