/* Ends in the way that argv[1] names: a number, or `abort`, `segv`, `_exit`, `loop` (works until it is killed),
 * `loop-bounded`, `close FILE`. */
#include "program.h"

#include <signal.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count < 2) return 2;
    primary_context();
    CUdeviceptr address;
    MUST(cuMemAlloc(&address, 100));
    if (!strcmp(arguments[1], "abort")) abort();
    if (!strcmp(arguments[1], "segv")) raise(SIGSEGV);
    if (!strcmp(arguments[1], "_exit")) _exit(9);
    if (!strcmp(arguments[1], "close")) {
        for (int file = 3; file < 1024; ++file) close(file);
        FILE *mine = fopen(arguments[2], "wb");
        for (int index = 0; index < 300; ++index) dup(fileno(mine));
        MUST(cuMemFree(address));
        return 0;
    }
    int bounded = !strcmp(arguments[1], "loop-bounded") ? 30000 : -1;
    while (!strcmp(arguments[1], "loop") || bounded-- > 0) {
        CUstream stream;
        CUgraph graph;
        CUgraphExec exec;
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        MUST(cuMemsetD32Async(address, 1, 4, stream));
        MUST(cuStreamEndCapture(stream, &graph));
        MUST(cuGraphInstantiate(&exec, graph, 0));
        MUST(cuGraphLaunch(exec, stream));
        MUST(cuGraphExecDestroy(exec));
        MUST(cuGraphDestroy(graph));
        MUST(cuStreamDestroy(stream));
        static int said;
        if (!said++) SAY("working");
    }
    return atoi(arguments[1]);
}
