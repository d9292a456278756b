/* Works; argv[1] is what it computes. Behind it: `commit` says that it is ready, `wait` sleeps until it is ended, and
 * so does WORKER_WAITS in the environment. */
#include "worker.h"

#include <unistd.h>

int main(int count, char **arguments) {
    if (count < 2) return 2;
    const char *asked = getenv("WORKER_WAITS");
    int waits = asked && *asked;
    work("worker", (unsigned)atoi(arguments[1]));
    for (int index = 2; index < count; ++index) {
        if (!strcmp(arguments[index], "commit") && foundry.commit()) return 3;
        waits |= !strcmp(arguments[index], "wait");
    }
    if (waits) {
        SAY("waiting");
        sleep(600);
    }
    return 0;
}
