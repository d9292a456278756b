/* One process's work: memory and one named graph, which a restore takes from the archive. Says `ROLE how value`. */
#ifndef FOUNDRY_CASES_WORKER_H
#define FOUNDRY_CASES_WORKER_H

#include "interface.h"
#include "program.h"

__attribute__((unused)) static void work(const char *name, unsigned value) {
    find_interface();
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr data;
    uint32_t got[4] = {0};
    const char *how = "captured";
    primary_context();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&data, 4096));
    foundry_graph *found = foundry.mode() == 2 ? foundry.find("work", "1") : NULL;
    if (found && !foundry.wait(found)) {
        if (foundry.launch(found, stream)) exit(3);
        how = "restored";
    } else {
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        MUST(cuMemsetD32Async(data, value, 4, stream));
        MUST(cuStreamEndCapture(stream, &graph));
        if (foundry.begin("work", "1")) exit(3);
        MUST(cuGraphInstantiate(&exec, graph, 0));
        if (foundry.end("{}")) exit(3);
        MUST(cuGraphLaunch(exec, stream));
    }
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(got, data, sizeof got));
    SAY("%s %s %u", name, how, got[3]);
}

#endif
