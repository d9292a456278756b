/* Does what its words say, one after the other: init, retain, release, alloc; state (is there a primary context?);
 * flags (asks for a context that waits otherwise); set:NAME=VALUE; fork (the child does the words that follow, then the
 * parent); spawn (the same program, with the words that follow); sleep:MILLISECONDS; status (what the hook has said so
 * far, in one line). */
#include "program.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void pause_for(long milliseconds) {
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
}

static void say_status(void) {
    char text[2000] = "";
    const char *path = getenv("FOUNDRY_STATUS");
    FILE *file = path ? fopen(path, "r") : NULL;
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    for (size_t at = 0; at < size; at++)
        if (text[at] == '\n') text[at] = ';';
    SAY("status %s", text);
}

static void spawn(char **arguments) {
    pid_t child;
    int status = -1;
    if (!posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ)) waitpid(child, &status, 0);
    SAY("spawned %d", status);
}

int main(int count, char **arguments) {
    CUcontext context = NULL;
    CUdeviceptr address;
    for (int at = 1; at < count; at++) {
        char *word = arguments[at];
        if (!strcmp(word, "init")) {
            SAY("init %d", cuInit(0));
        } else if (!strcmp(word, "retain")) {
            SAY("retain %d", cuDevicePrimaryCtxRetain(&context, 0));
            cuCtxSetCurrent(context);
        } else if (!strcmp(word, "release")) {
            SAY("release %d", cuDevicePrimaryCtxRelease(0));
        } else if (!strcmp(word, "alloc")) {
            MUST(cuMemAlloc(&address, 1000));
            SAY("alloc %llx", address);
        } else if (!strcmp(word, "state")) {
            unsigned flags;
            int active = -1;
            CUresult result = cuDevicePrimaryCtxGetState(0, &flags, &active);
            SAY("state %d %d", result, active);
        } else if (!strcmp(word, "flags")) {
            SAY("flags %d", cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
        } else if (!strncmp(word, "set:", 4)) {
            putenv(word + 4);
        } else if (!strcmp(word, "fork")) {
            pid_t child = fork();
            if (child) waitpid(child, NULL, 0);
        } else if (!strcmp(word, "spawn")) {
            arguments[at] = arguments[0];
            spawn(arguments + at);
            return 0;
        } else if (!strncmp(word, "sleep:", 6)) {
            pause_for(atol(word + 6));
        } else if (!strcmp(word, "status")) {
            say_status();
        } else {
            return 2;
        }
    }
    return 0;
}
