/* Three levels of processes; each word of argv[2] says how a level starts the next: f fork, v vfork and exec, s
 * posix_spawn, x becomes the next one by exec. A level with a capital letter uses the driver before it starts the next.
 * The last level works always. argv[1] is the level. Ends with the sum of what its children ended with. */
#define _GNU_SOURCE
#include "worker.h"

#include <ctype.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int ending_of(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int level(char *self, unsigned depth, char *how) {
    char name[32], next[32];
    snprintf(name, sizeof name, "level-%u", depth);
    snprintf(next, sizeof next, "%u", depth + 1);
    char letter = how[depth];
    if (!letter || isupper((unsigned char)letter)) work(name, 100 + depth);
    if (!letter) return 0;
    char *words[] = {self, next, how, NULL};
    pid_t child = -1;
    switch (tolower((unsigned char)letter)) {
    case 'f':
        fflush(NULL);
        child = fork();
        if (!child) exit(level(self, depth + 1, how));
        break;
    case 'v':
        child = vfork();
        if (!child) {
            execv(self, words);
            _exit(9);
        }
        break;
    case 's':
        if (posix_spawn(&child, self, NULL, NULL, words, environ)) return 9;
        break;
    case 'x':
        execv(self, words);
        return 9;
    }
    return ending_of(child);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    return level(arguments[0], (unsigned)atoi(arguments[1]), arguments[2]);
}
