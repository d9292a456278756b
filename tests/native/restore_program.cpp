// A program that does what its arguments say, one driver or Foundry call each, and prints one line for each answer.
// It knows nothing of the hook but the C interface, which it finds the way any program would.
#include "capi/foundry_capi.h"

#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

void *driver_library;

#define TEXT(name) #name
#define SYMBOL(name) TEXT(name)
#define CU(name) (reinterpret_cast<decltype(&::name)>(dlsym(driver_library, SYMBOL(name))))
#define API(name) (reinterpret_cast<decltype(&::name)>(dlsym(RTLD_DEFAULT, #name)))

using Words = std::vector<std::string>;

struct Image {
    std::vector<char> bytes;
    CUlibrary library = nullptr;
    CUmodule module = nullptr;
};

std::vector<Image> images;
std::vector<CUcontext> contexts;

void say(const std::string &line) {
    printf("%s\n", line.c_str());
    fflush(stdout);
}

void check(const char *what, CUresult result) {
    if (!result) return;
    const char *name = "?";
    CU(cuGetErrorName)(result, &name);
    say(std::string(what) + ": " + name);
}

CUdeviceptr address(const std::string &word) {
    return strtoull(word.c_str(), nullptr, 0);
}

std::string number(unsigned long long value) {
    char text[32];
    snprintf(text, sizeof text, "0x%llx", value);
    return text;
}

void allocate(const Words &words) {
    CUdeviceptr got = 0;
    CUresult result = CU(cuMemAlloc)(&got, address(words[1]));
    check("alloc", result);
    if (!result) say("alloc " + number(got));
}

void load(const Words &words) {
    std::ifstream file(words[1], std::ios::binary);
    images.emplace_back();
    Image &image = images.back();
    image.bytes.assign(std::istreambuf_iterator<char>(file), {});
    // Those after the path are JIT options, as NUMBER=VALUE.
    std::vector<CUjit_option> options;
    std::vector<void *> values;
    for (size_t at = 2; at < words.size(); at++) {
        options.push_back(static_cast<CUjit_option>(atoi(words[at].c_str())));
        values.push_back(reinterpret_cast<void *>(address(words[at].substr(words[at].find('=') + 1))));
    }
    auto count = static_cast<unsigned>(options.size());
    CUresult result =
        words[0] == "library" ? CU(cuLibraryLoadData)(&image.library, image.bytes.data(), options.data(), values.data(),
                                                      count, nullptr, nullptr, 0)
        : count ? CU(cuModuleLoadDataEx)(&image.module, image.bytes.data(), count, options.data(), values.data())
                : CU(cuModuleLoadData)(&image.module, image.bytes.data());
    check("load", result);
    if (!result)
        say(words[0] + " " +
            number(reinterpret_cast<uintptr_t>(image.library ? static_cast<void *>(image.library) : image.module)));
}

void unload(const Words &words) {
    Image &image = images[address(words[1])];
    CUresult result = image.library ? CU(cuLibraryUnload)(image.library) : CU(cuModuleUnload)(image.module);
    check("unload", result);
    if (!result) say("unloaded");
}

void kernel_attribute(const Words &words) {
    Image &image = images[address(words[1])];
    auto id = static_cast<CUfunction_attribute>(address(words[3]));
    int value = 0;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    if (image.library) {
        check("kernel", CU(cuLibraryGetKernel)(&kernel, image.library, words[2].c_str()));
        if (words.size() > 4)
            check("set", CU(cuKernelSetAttribute)(id, static_cast<int>(address(words[4])), kernel, 0));
        check("attribute", CU(cuKernelGetAttribute)(&value, id, kernel, 0));
    } else {
        check("kernel", CU(cuModuleGetFunction)(&function, image.module, words[2].c_str()));
        if (words.size() > 4) check("set", CU(cuFuncSetAttribute)(function, id, static_cast<int>(address(words[4]))));
        check("attribute", CU(cuFuncGetAttribute)(&value, id, function));
    }
    say("attribute " + std::to_string(value));
}

void set_global(const Words &words) {
    Image &image = images[address(words[1])];
    CUdeviceptr at = 0;
    size_t size = 0;
    check("global", image.library ? CU(cuLibraryGetGlobal)(&at, &size, image.library, words[2].c_str())
                                  : CU(cuModuleGetGlobal)(&at, &size, image.module, words[2].c_str()));
    unsigned value = static_cast<unsigned>(address(words[3]));
    check("write", CU(cuMemcpyHtoD)(at, &value, sizeof value));
}

void read(const Words &words) {
    std::vector<unsigned> values(address(words[2]));
    check("read", CU(cuMemcpyDtoH)(values.data(), address(words[1]), values.size() * sizeof(unsigned)));
    std::string line = "read";
    for (unsigned value : values) line += " " + std::to_string(value);
    say(line);
}

void write(const Words &words) {
    std::vector<unsigned> values(address(words[3]), static_cast<unsigned>(address(words[2])));
    check("write", CU(cuMemcpyHtoD)(address(words[1]), values.data(), values.size() * sizeof(unsigned)));
}

void launch(CUstream stream, const char *name, std::vector<void *> parameters) {
    Image &image = images.back();
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    if (image.library) {
        check("kernel", CU(cuLibraryGetKernel)(&kernel, image.library, name));
        check("function", CU(cuKernelGetFunction)(&function, kernel));
    } else {
        check("function", CU(cuModuleGetFunction)(&function, image.module, name));
    }
    check("launch", CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters.data(), nullptr));
}

// Captures what a restore then must not need to: record:<set>:<key>:<address>:<value>. Memory at the address becomes
// value + 100, by way of memory that is allocated while the capture is in progress.
void record(const Words &words) {
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr target = address(words[3]), own = 0;
    unsigned value = static_cast<unsigned>(address(words[4])), hundred = 100, count = 4;
    check("stream", CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    say("begin " + std::to_string(API(foundry_graph_begin)(words[1].c_str(), words[2].c_str())));
    check("begin", CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    check("alloc", CU(cuMemAlloc)(&own, 4096));
    launch(stream, "fill", {&own, &hundred, &count});
    launch(stream, "fill", {&target, &value, &count});
    launch(stream, "add", {&target, &own, &count});
    check("end", CU(cuStreamEndCapture)(stream, &graph));
    check("instantiate", CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    say("end " + std::to_string(API(foundry_graph_end)("recorded")));
    check("launch", CU(cuGraphLaunch)(exec, stream));
    check("sync", CU(cuStreamSynchronize)(stream));
}

foundry_graph *find(const Words &words) {
    return API(foundry_graph_find)(words[1].c_str(), words[2].c_str());
}

void wait(const Words &words) {
    foundry_graph *graph = find(words);
    int answer = graph ? API(foundry_graph_wait)(graph) : FOUNDRY_UNAVAILABLE;
    say(answer ? "wait " + std::to_string(answer) + " " + API(foundry_reason)() : "wait 0");
}

void graph_command(const Words &words) {
    foundry_graph *graph = find(words);
    if (words[0] == "find") {
        if (!graph) return say(std::string("not found: ") + API(foundry_reason)());
        const char *metadata = API(foundry_graph_metadata)(graph);
        return say(std::string("found ") + (metadata ? metadata : "without metadata"));
    }
    if (words[0] == "give-up") return API(foundry_graph_give_up)(graph, words[3].c_str());
    if (words[0] == "exec")
        return say(API(foundry_graph_exec)(graph) ? "exec" : std::string("no exec: ") + API(foundry_reason)());
    if (words[0] == "launch") {
        int answer = API(foundry_graph_launch)(graph, nullptr);
        say("launch " + std::to_string(answer));
    }
}

// The keys of a set: list:<set>.
void list(const Words &words) {
    std::string line = "list";
    foundry_graph *graph = nullptr;
    while ((graph = API(foundry_graph_next)(words[1].c_str(), graph)))
        line += std::string(" ") + API(foundry_graph_key)(graph);
    say(line + "; " + API(foundry_reason)());
}

// Threads that ask for graphs at the same moment: threads:<how many>:<set>:<key>:<key>...
void threads(const Words &words) {
    std::vector<std::thread> all;
    std::vector<int> answers(address(words[1]), -9);
    CUcontext context = nullptr;
    CU(cuCtxGetCurrent)(&context);
    for (size_t at = 0; at < answers.size(); at++)
        all.emplace_back([&, at] {
            CU(cuCtxSetCurrent)(context);
            foundry_graph *graph =
                API(foundry_graph_find)(words[2].c_str(), words[3 + at % (words.size() - 3)].c_str());
            answers[at] = API(foundry_graph_wait)(graph);
        });
    for (auto &thread : all) thread.join();
    std::string line = "threads";
    for (int answer : answers) line += " " + std::to_string(answer);
    say(line);
}

void context(const Words &words) {
    CUcontext made = nullptr;
    if (words[0] == "context") {
        CUresult result = CU(cuDevicePrimaryCtxRetain)(&made, 0);
        check("context", result);
    } else {
        auto create =
            reinterpret_cast<CUresult (*)(CUcontext *, unsigned, CUdevice)>(dlsym(driver_library, "cuCtxCreate_v2"));
        check("create", create(&made, 0, 0));
    }
    contexts.push_back(made);
    check("current", CU(cuCtxSetCurrent)(made));
}

void forked() {
    pid_t child = fork();
    if (!child) {
        say("child mode " + std::to_string(API(foundry_mode)()));
        foundry_graph *graph = API(foundry_graph_find)("decode", "1");
        say(graph ? "child found" : "child found nothing");
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}

void run(const Words &words) {
    const std::string &what = words[0];
    if (what == "init") return check("init", CU(cuInit)(0));
    if (what == "context" || what == "create") return context(words);
    if (what == "destroy") return check("destroy", CU(cuCtxDestroy)(contexts[address(words[1])]));
    if (what == "release") return check("release", CU(cuDevicePrimaryCtxRelease)(0));
    if (what == "alloc") return allocate(words);
    if (what == "free") return check("free", CU(cuMemFree)(address(words[1])));
    if (what == "library" || what == "module") return load(words);
    if (what == "unload") return unload(words);
    if (what == "attribute") return kernel_attribute(words);
    if (what == "global") return set_global(words);
    if (what == "read") return read(words);
    if (what == "write") return write(words);
    if (what == "sync") return check("sync", CU(cuCtxSynchronize)());
    if (what == "wait") return wait(words);
    if (what == "find" || what == "exec" || what == "give-up" || what == "launch") return graph_command(words);
    if (what == "list") return list(words);
    if (what == "threads") return threads(words);
    if (what == "fork") return forked();
    if (what == "mode") {
        const int answer = API(foundry_mode)();
        return say("mode " + std::to_string(answer) + " " + API(foundry_reason)());
    }
    if (what == "record") return record(words);
    if (what == "commit") return say("commit " + std::to_string(API(foundry_commit)()));
    if (what == "count") return API(foundry_count)(words[1].c_str(), address(words[2]));
    if (what == "counter") return say(words[1] + " " + std::to_string(API(foundry_counter)(words[1].c_str())));
    if (what == "scratch-begin") return say("scratch " + std::to_string(API(foundry_scratch_begin)("warm-up")));
    if (what == "scratch-end") return say("scratch " + std::to_string(API(foundry_scratch_end)()));
    if (what == "graph-begin")
        return say("begin " + std::to_string(API(foundry_graph_begin)(words[1].c_str(), words[2].c_str())));
    if (what == "graph-end") {
        const int answer = API(foundry_graph_end)(words[1].c_str());
        return say("end " + std::to_string(answer) + " " + API(foundry_reason)());
    }
    if (what == "sleep") return std::this_thread::sleep_for(std::chrono::milliseconds(address(words[1])));
    if (what == "built") { // until so many graphs are, or for two seconds
        for (int tries = 0; tries < 2000 && API(foundry_counter)("graphs_built") < address(words[1]); tries++)
            usleep(1000);
        return;
    }
    say("no such command: " + what);
    exit(2);
}

} // namespace

int main(int count, char **arguments) {
#ifdef FOUNDRY_EMBED_H
    if (int answer = foundry_embed_restore(getenv("EMBEDDED_IMAGE"), getenv("EMBEDDED_REPORT")))
        say("embed " + std::to_string(answer) + " " + API(foundry_reason)());
#endif
    driver_library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver_library) return fprintf(stderr, "%s\n", dlerror()), 2;
    for (int at = 1; at < count; at++) {
        Words words(1);
        for (const char *letter = arguments[at]; *letter; letter++) {
            if (*letter == ':')
                words.emplace_back();
            else
                words.back() += *letter;
        }
        run(words);
    }
    return 0;
}
