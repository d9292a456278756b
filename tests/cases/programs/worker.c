/* Works; argv[1] is what it computes. Behind it: `commit` says that it is ready, `wait` sleeps until it is ended. */
#include "worker.h"

#include <unistd.h>

int main(int count, char **arguments) {
    if (count < 2) return 2;
    work("worker", (unsigned)atoi(arguments[1]));
    for (int index = 2; index < count; ++index) {
        if (!strcmp(arguments[index], "commit") && foundry.commit()) return 3;
        if (!strcmp(arguments[index], "wait")) {
            SAY("waiting");
            sleep(600);
        }
    }
    return 0;
}
