/* What each way of asking answers for the names in the file argv[1], at versions and with flags: `way name version
 * flags result status function`. The function is named by the symbol that stands at the address, in whatever library.
 */
#define _GNU_SOURCE
#define PROGRAM_WITHOUT_DRIVER
#include "program.h"

#include <dlfcn.h>

typedef CUresult (*Old)(const char *, void **, int, cuuint64_t);
typedef CUresult (*New)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static const char *function_at(void *address) {
    Dl_info info;
    if (!address) return "none";
    return dladdr(address, &info) && info.dli_sname ? info.dli_sname : "unknown";
}

int main(int count, char **arguments) {
    static const int versions[] = {2000, 11000, 11030, 12000, 12050, 13000, 99000};
    char name[128];
    if (count < 2) return 2;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    Old old = (Old)dlsym(driver, "cuGetProcAddress");
    New latest = (New)dlsym(driver, "cuGetProcAddress_v2");
    FILE *names = fopen(arguments[1], "r");
    while (names && fscanf(names, "%127s", name) == 1) {
        printf("dlsym %s %s\n", name, function_at(dlsym(driver, name)));
        for (unsigned version = 0; version < sizeof versions / sizeof *versions; ++version)
            for (cuuint64_t flags = 0; flags < 4; ++flags) {
                void *found = (void *)1;
                CUdriverProcAddressQueryResult status = 77;
                CUresult result = latest(name, &found, versions[version], flags, &status);
                printf("new %s %d %d %d %d %s\n", name, versions[version], (int)flags, result, status,
                       result ? "-" : function_at(found));
                found = (void *)1;
                result = latest(name, &found, versions[version], flags, NULL);
                printf("quiet %s %d %d %d %s\n", name, versions[version], (int)flags, result,
                       result ? "-" : function_at(found));
                found = (void *)1;
                result = old(name, &found, versions[version], flags);
                printf("old %s %d %d %d %s\n", name, versions[version], (int)flags, result,
                       result ? "-" : function_at(found));
            }
    }
    return 0;
}
