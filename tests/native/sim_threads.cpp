// Many threads at once: allocation, capture in relaxed mode, instantiation, launch.
#include "sim_test.h"

#include <thread>

int main() {
    CUcontext context = start();
    TestLibrary library;
    std::vector<std::thread> threads;
    for (std::uint32_t id = 0; id < 8; ++id)
        threads.emplace_back([&, id] {
            CHECK(cuCtxSetCurrent(context));
            CUfunction append = library.function("append");
            CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
            CHECK(cuThreadExchangeStreamCaptureMode(&mode));
            CUdeviceptr list = device_memory(4096);
            CUstream stream = new_stream();
            for (std::uint32_t round = 0; round < 20; ++round) {
                Append work(list, id * 1000 + round);
                CUgraph graph = nullptr;
                CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
                CHECK(work.launch(append, stream));
                CHECK(cuStreamEndCapture(stream, &graph));
                CUgraphExec exec = instantiate(graph);
                CHECK(cuGraphLaunch(exec, stream));
                CHECK(cuGraphExecDestroy(exec));
                CHECK(cuGraphDestroy(graph));
            }
            std::vector<std::uint32_t> values = list_at(list);
            REQUIRE(values.size() == 20 && values[19] == id * 1000 + 19);
            CHECK(cuMemFree_v2(list));
        });
    for (std::thread &thread : threads) thread.join();
}
