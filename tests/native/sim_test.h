// What the simulator's test programs share. Each checks one behaviour and exits 0 if it holds.
// `// environment: NAME=value ...` in a program says what the runner sets for it.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

inline const char *error_name(CUresult result) {
    const char *name = nullptr;
    cuGetErrorName(result, &name);
    return name ? name : "?";
}

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                               \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (false)

#define EXPECT(expected, call)                                                                                         \
    do {                                                                                                               \
        CUresult result_ = (call);                                                                                     \
        if (result_ != (expected)) {                                                                                   \
            std::fprintf(stderr, "%s:%d: %s gave %s, expected %s\n", __FILE__, __LINE__, #call, error_name(result_),   \
                         error_name(expected));                                                                        \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (false)

#define CHECK(call) EXPECT(CUDA_SUCCESS, call)

inline CUcontext start(int device = 0) {
    CHECK(cuInit(0));
    CUcontext context = nullptr;
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    return context;
}

inline std::vector<char> test_image(const char *variable = "FOUNDRY_SIM_TEST_IMAGE") {
    const char *path = std::getenv(variable);
    REQUIRE(path);
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file.good());
    return {std::istreambuf_iterator<char>(file), {}};
}

struct TestLibrary {
    CUlibrary library = nullptr;
    TestLibrary() {
        std::vector<char> image = test_image();
        CHECK(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    }
    CUkernel kernel(const char *name) const {
        CUkernel found = nullptr;
        CHECK(cuLibraryGetKernel(&found, library, name));
        return found;
    }
    CUfunction function(const char *name) const {
        CUfunction found = nullptr;
        CHECK(cuKernelGetFunction(&found, kernel(name)));
        return found;
    }
};

inline CUdeviceptr device_memory(std::size_t bytes) {
    CUdeviceptr address = 0;
    CHECK(cuMemAlloc_v2(&address, bytes));
    CHECK(cuMemsetD8_v2(address, 0, bytes));
    return address;
}

inline std::uint32_t word_at(CUdeviceptr address) {
    std::uint32_t value = 0;
    CHECK(cuMemcpyDtoH_v2(&value, address, sizeof value));
    return value;
}

inline CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    CHECK(cuStreamCreate(&stream, flags));
    return stream;
}

inline CUevent new_event(unsigned flags = CU_EVENT_DISABLE_TIMING) {
    CUevent event = nullptr;
    CHECK(cuEventCreate(&event, flags));
    return event;
}

// append(list, value): list[0] counts, the values follow.
struct Append {
    CUdeviceptr list;
    std::uint32_t value;
    void *arguments[2];
    Append(CUdeviceptr to, std::uint32_t what) : list(to), value(what), arguments{&list, &value} {}
    Append(const Append &) = delete;
    CUresult launch(CUfunction function, CUstream stream) {
        return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
    }
    CUDA_KERNEL_NODE_PARAMS node(CUfunction function) {
        CUDA_KERNEL_NODE_PARAMS parameters = {};
        parameters.func = function;
        parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
        parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
        parameters.kernelParams = arguments;
        return parameters;
    }
};

inline std::vector<std::uint32_t> list_at(CUdeviceptr list) {
    std::vector<std::uint32_t> values(word_at(list));
    if (!values.empty()) CHECK(cuMemcpyDtoH_v2(values.data(), list + 4, values.size() * 4));
    return values;
}

inline std::vector<CUgraphNode> nodes_of(CUgraph graph) {
    std::size_t count = 0;
    CHECK(cuGraphGetNodes(graph, nullptr, &count));
    std::vector<CUgraphNode> nodes(count);
    CHECK(cuGraphGetNodes(graph, nodes.data(), &count));
    return nodes;
}

inline CUgraphNodeType type_of(CUgraphNode node) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CHECK(cuGraphNodeGetType(node, &type));
    return type;
}

inline std::size_t edge_count(CUgraph graph) {
    std::size_t count = 0;
    CHECK(cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count));
    return count;
}

inline CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}
