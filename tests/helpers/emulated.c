/* Stands where a program of another processor is expected, and becomes the emulator that runs it. Linked statically, so
 * that what the environment preloads is left to the program. EMULATOR and LIBRARIES are strings, the program lies under
 * its own name in the folder FOLDER beside this. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    char self[PATH_MAX], program[PATH_MAX + 64];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char **words = calloc((size_t)count + 6, sizeof *words), *slash;
    int at = 0;
    if (length < 0 || !words) return 126;
    self[length] = 0;
    slash = strrchr(self, '/');
    *slash = 0;
    snprintf(program, sizeof program, "%s/" FOLDER "/%s", self, slash + 1);
    words[at++] = EMULATOR;
    words[at++] = "-L";
    words[at++] = LIBRARIES;
    words[at++] = "-0";
    words[at++] = arguments[0];
    words[at++] = program;
    memcpy(words + at, arguments + 1, (size_t)count * sizeof *words);
    execvp(EMULATOR, words);
    return 127;
}
