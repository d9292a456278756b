/* Goes the way of a server that starts: driver, context, image argv[1], a captured graph; then opens the library
 * argv[2] and commits twice, and at last opens argv[3] and makes another graph. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>

static CUstream stream;
static CUdeviceptr data;

static void capture(void) {
    CUgraph graph;
    CUgraphExec exec;
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuMemsetD32Async(data, 1, 4, stream));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
}

static int commit(void) {
    int (*function)(void);
    *(void **)&function = dlsym(RTLD_DEFAULT, "foundry_commit");
    return function();
}

int main(int count, char **arguments) {
    static unsigned char image[1 << 22];
    CUlibrary library;
    if (count < 4) return 2;
    FILE *file = fopen(arguments[1], "rb");
    if (!file || !fread(image, 1, sizeof image, file)) return 2;
    fclose(file);
    primary_context();
    MUST(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&data, 4096));
    capture();
    capture();
    if (!dlopen(arguments[2], RTLD_NOW) || commit() || commit()) return 3;
    if (!dlopen(arguments[3], RTLD_NOW)) return 3;
    capture();
    return 0;
}
