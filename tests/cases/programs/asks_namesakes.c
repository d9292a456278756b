/* Asks the library argv[1] for functions of its own, by its handle, in the presence of a driver. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>

int main(int count, char **arguments) {
    static const char *names[] = {"cudnnCreate",    "cublasCreate_v2", "cufftPlan1d",
                                  "cusparseCreate", "cuNumericInit",   "cuInit_v9"};
    if (count < 2) return 2;
    void *before = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(before, "cuInit");
    SAY("cuInit %d", init(1));
    primary_context();
    for (unsigned index = 0; index < sizeof names / sizeof *names; ++index) {
        int (*own)(void) = (int (*)(void))dlsym(before, names[index]);
        SAY("%s %d", names[index], own ? own() : -1);
    }
    init = (int (*)(unsigned))dlsym(before, "cuInit");
    SAY("again %d", init(2));
    SAY("elsewhere %d", dlsym(RTLD_DEFAULT, "cudnnCreate") != NULL);
    CUdeviceptr data;
    MUST(cuMemAlloc(&data, 64));
    return 0;
}
