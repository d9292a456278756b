/* Works, after pages at the places argv[2..] were taken before the driver was. argv[1] is what it computes; the pages
 * are those of the file that OCCUPIED_WITH names, if it is set. */
#define _GNU_SOURCE
#include "worker.h"

#include <fcntl.h>
#include <sys/mman.h>

int main(int count, char **arguments) {
    if (count < 2) return 2;
    const char *with = getenv("OCCUPIED_WITH");
    int file = with ? open(with, O_RDONLY) : -1;
    for (int index = 2; index < count; ++index) {
        void *place = (void *)strtoull(arguments[index], NULL, 0);
        int flags = MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0) | MAP_FIXED_NOREPLACE;
        if (mmap(place, 4096, PROT_READ | PROT_WRITE, flags, file, 0) != place) return 4;
        memset(place, 0x5a, 4096);
    }
    work("worker", (unsigned)atoi(arguments[1]));
    for (int index = 2; index < count; ++index) {
        const unsigned char *place = (void *)strtoull(arguments[index], NULL, 0);
        for (int byte = 0; byte < 4096; ++byte)
            if (place[byte] != 0x5a) return 5;
    }
    return 0;
}
