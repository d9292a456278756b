/* A preload library that lets the calls by which a program changes a folder fail, one at a time, or kills it at one.
   Calls elsewhere are not touched. `failing_calls_arm` sets what happens from then on in this process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, KILL_BEFORE, FAIL, FAIL_FROM, SHORT, INTERRUPT };

static char folder[PATH_MAX];
static int mode = COUNT, at = -1, code, seen;

void failing_calls_arm(const char *where, int what, int number, int error) {
    snprintf(folder, sizeof folder, "%s/", where);
    mode = what;
    at = number;
    code = error;
    seen = 0;
}

int failing_calls_seen(void) {
    return seen;
}

static int inside(const char *path) {
    return folder[0] && path && !strncmp(path, folder, strlen(folder));
}

static int inside_handle(int handle) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, sizeof path - 2);
    if (size <= 0) return 0;
    path[size] = '/';
    path[size + 1] = 0;
    return inside(path);
}

/* Whether the call is to fail; counts it. */
static int fails(void) {
    int number = __atomic_fetch_add(&seen, 1, __ATOMIC_SEQ_CST);
    if (mode == KILL_BEFORE && number == at) raise(SIGKILL);
    if ((mode == FAIL && number == at) || (mode == FAIL_FROM && number >= at)) {
        errno = code;
        return 1;
    }
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int handle, const void *data, size_t size) {
    static __thread int turn;
    if (inside_handle(handle)) {
        if (fails()) return -1;
        if (mode == SHORT && size > 7) size = size / 3 + 1;
        if (mode == INTERRUPT && ++turn % 2) {
            errno = EINTR;
            return -1;
        }
    }
    return REAL(write)(handle, data, size);
}

int fsync(int handle) {
    static __thread int turn;
    if (inside_handle(handle)) {
        if (fails()) return -1;
        if (mode == INTERRUPT && ++turn % 2) {
            errno = EINTR;
            return -1;
        }
    }
    return REAL(fsync)(handle);
}

#define WITH_PATHS(name, condition, parameters, arguments)                                                             \
    int name parameters {                                                                                              \
        if ((condition) && fails()) return -1;                                                                         \
        return REAL(name) arguments;                                                                                   \
    }

WITH_PATHS(rename, inside(from) || inside(to), (const char *from, const char *to), (from, to))
WITH_PATHS(link, inside(from) || inside(to), (const char *from, const char *to), (from, to))
WITH_PATHS(unlink, inside(path), (const char *path), (path))
WITH_PATHS(mkdir, inside(path), (const char *path, mode_t bits), (path, bits))
WITH_PATHS(rmdir, inside(path), (const char *path), (path))
WITH_PATHS(unlinkat, inside_handle(where), (int where, const char *path, int flags), (where, path, flags))

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    if ((inside(from) || inside(to)) && fails()) return -1;
    return REAL(linkat)(from_at, from, to_at, to, flags);
}

static int opened(const char *name, const char *path, int flags, mode_t bits) {
    if ((flags & O_CREAT) && inside(path) && fails()) return -1;
    return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name))(path, flags, bits);
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        mode_t bits = 0;                                                                                               \
        if (flags & (O_CREAT | __O_TMPFILE)) {                                                                         \
            va_list list;                                                                                              \
            va_start(list, flags);                                                                                     \
            bits = va_arg(list, mode_t);                                                                               \
            va_end(list);                                                                                              \
        }                                                                                                              \
        return opened(#name, path, flags, bits);                                                                       \
    }

OPEN(open)
OPEN(open64)
