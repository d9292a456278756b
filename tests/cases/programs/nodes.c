/* One named graph for each word of the command line behind the image's path, which is loaded from memory, or behind
 * `file:` by the driver; `load` and `unload` do so once more. In a restore each is taken from the
 * archive where it can be. Says `KEY how value`, how being captured or restored. */
#define _GNU_SOURCE
#include "interface.h"
#include "program.h"

#include <sys/stat.h>
#include <unistd.h>

static CUstream stream;
static CUcontext context;
static CUdeviceptr data, other, managed;
static unsigned char *pinned, *ordinary;
static CUlibrary library;
static CUmodule optioned[2];
static const void *image_bytes;
static CUevent event;
static int called;

static CUfunction function(const char *name) {
    CUkernel kernel;
    CUfunction found;
    MUST(cuLibraryGetKernel(&kernel, library, name));
    MUST(cuKernelGetFunction(&found, kernel));
    return found;
}

static void kernel_attribute(const char *name, CUfunction_attribute attribute, int value) {
    CUkernel kernel;
    CUdevice device;
    MUST(cuCtxGetDevice(&device));
    MUST(cuLibraryGetKernel(&kernel, library, name));
    MUST(cuKernelSetAttribute(attribute, value, kernel, device));
}

static CUDA_KERNEL_NODE_PARAMS launch_of(const char *name, void **arguments, unsigned shared, unsigned blocks) {
    CUDA_KERNEL_NODE_PARAMS launch = {0};
    launch.func = function(name);
    launch.gridDimX = blocks;
    launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
    launch.sharedMemBytes = shared;
    launch.kernelParams = arguments;
    return launch;
}

static CUgraphNode add_kernel(CUgraph graph, const char *name, void **arguments, unsigned shared, unsigned blocks) {
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS launch = launch_of(name, arguments, shared, blocks);
    MUST(cuGraphAddKernelNode(&node, graph, NULL, 0, &launch));
    return node;
}

static CUgraphNode add_one(CUgraph graph, CUgraphNode after) {
    CUgraphNode node;
    void *arguments[] = {&data};
    CUDA_KERNEL_NODE_PARAMS launch = launch_of("add_one", arguments, 0, 1);
    MUST(cuGraphAddKernelNode(&node, graph, after ? &after : NULL, after != NULL, &launch));
    return node;
}

static void shared(CUgraph graph, int bytes) {
    uint32_t value = 7;
    void *arguments[] = {&data, &value};
    kernel_attribute("shared_last", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
    kernel_attribute("shared_last", CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100);
    add_kernel(graph, "shared_last", arguments, (unsigned)bytes, 1);
}

static void geometry(CUgraph graph, unsigned cluster, int cooperative) {
    void *arguments[] = {&data};
    CUkernelNodeAttrValue value;
    memset(&value, 0, sizeof value);
    if (cluster > 8) kernel_attribute("geometry", CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    CUgraphNode node = add_kernel(graph, "geometry", arguments, 0, cluster ? cluster : 1);
    if (cluster) {
        value.clusterDim.x = cluster;
        value.clusterDim.y = value.clusterDim.z = 1;
        MUST(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    } else {
        value.cooperative = cooperative;
        MUST(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    }
}

static void updatable(CUgraph graph) {
    CUkernelNodeAttrValue value;
    memset(&value, 0, sizeof value);
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    MUST(cuGraphKernelNodeSetAttribute(add_one(graph, NULL), CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value));
}

static void many(CUgraph graph) {
    static unsigned char bytes[8000];
    for (int index = 0; index < 8000; ++index) bytes[index] = (unsigned char)(index % 7);
    void *arguments[] = {bytes, &data};
    add_kernel(graph, "sum_many", arguments, 0, 1);
}

static void look_up(CUgraph graph, uint32_t index) {
    void *arguments[] = {&data, &index};
    add_kernel(graph, "look_up", arguments, 0, 1);
}

/* The image twice, with other options for the compiler; each has globals of its own. */
static void load_with_options(void) {
    for (uint32_t turn = 0; turn < 2; ++turn) {
        CUjit_option option = CU_JIT_MAX_REGISTERS;
        void *value = (void *)(uintptr_t)(32 + 32 * turn);
        uint32_t table[16] = {0, 0, 0, 100 * (turn + 1)}, offset = turn + 1;
        CUdeviceptr address;
        if (!optioned[turn]) MUST(cuModuleLoadDataEx(&optioned[turn], image_bytes, 1, &option, &value));
        MUST(cuModuleGetGlobal(&address, NULL, optioned[turn], "table"));
        MUST(cuMemcpyHtoD(address, table, sizeof table));
        MUST(cuModuleGetGlobal(&address, NULL, optioned[turn], "offset"));
        MUST(cuMemcpyHtoD(address, &offset, sizeof offset));
    }
    MUST(cuCtxSynchronize()); /* the stream does not wait for copies from pageable memory */
}

static void look_up_in_each(CUgraph graph) {
    uint32_t index = 3;
    CUgraphNode node, before = NULL;
    for (uint32_t turn = 0; turn < 2; ++turn) {
        CUdeviceptr target = data + 4 * turn;
        void *arguments[] = {&target, &index};
        CUDA_KERNEL_NODE_PARAMS launch = launch_of("look_up", arguments, 0, 1);
        MUST(cuModuleGetFunction(&launch.func, optioned[turn], "look_up"));
        MUST(cuGraphAddKernelNode(&node, graph, before ? &before : NULL, before != NULL, &launch));
        before = node;
    }
}

/* Both programmatic ports, and a plain edge beside them. */
static void programmatic(CUgraph graph) {
    CUgraphNode first = add_one(graph, NULL), second = add_one(graph, NULL), third = add_one(graph, NULL);
    CUgraphEdgeData edge = {CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {0}};
    CUgraphEdgeData early = {CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {0}};
    MUST(cuGraphAddDependencies_v2(graph, &first, &second, &edge, 1));
    MUST(cuGraphAddDependencies_v2(graph, &second, &third, &early, 1));
    MUST(cuGraphAddDependencies_v2(graph, &first, &third, NULL, 1));
}

static CUgraph conditional(CUgraph graph, unsigned type, unsigned value, unsigned bodies, CUgraphNode *node) {
    CUgraphConditionalHandle handle;
    CUgraphNodeParams what;
    memset(&what, 0, sizeof what);
    MUST(cuGraphConditionalHandleCreate(&handle, graph, context, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
    what.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    what.conditional.handle = handle;
    what.conditional.type = type;
    what.conditional.size = bodies;
    what.conditional.ctx = context;
    MUST(cuGraphAddNode_v2(node, graph, NULL, NULL, 0, &what));
    return what.conditional.phGraph_out[bodies - 1];
}

static void nested(CUgraph graph, int depth) {
    CUgraphNode node = add_one(graph, NULL);
    if (!depth) return;
    CUgraph inner;
    CUgraphNode child;
    MUST(cuGraphCreate(&inner, 0));
    nested(inner, depth - 1);
    MUST(cuGraphAddChildGraphNode(&child, graph, &node, 1, inner));
    MUST(cuGraphDestroy(inner));
}

static void graph_memory(CUgraph graph) {
    CUDA_MEM_ALLOC_NODE_PARAMS what;
    CUgraphNode allocation, after, release;
    memset(&what, 0, sizeof what);
    what.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    what.bytesize = 4096;
    MUST(cuGraphAddMemAllocNode(&allocation, graph, NULL, 0, &what));
    void *arguments[] = {&what.dptr};
    CUDA_KERNEL_NODE_PARAMS launch = launch_of("add_one", arguments, 0, 1);
    MUST(cuGraphAddKernelNode(&after, graph, &allocation, 1, &launch));
    MUST(cuGraphAddMemFreeNode(&release, graph, &after, 1, what.dptr));
    add_one(graph, after);
}

/* Ones of `rows` are rows, tens further layers, which begin within both memories. */
static void copy_of(CUgraph graph, unsigned to, void *target, unsigned from, const void *source, size_t rows) {
    CUDA_MEMCPY3D copy;
    CUgraphNode node;
    memset(&copy, 0, sizeof copy);
    copy.dstMemoryType = to;
    copy.srcMemoryType = from;
    if (to == CU_MEMORYTYPE_HOST)
        copy.dstHost = target;
    else
        copy.dstDevice = (CUdeviceptr)target;
    if (from == CU_MEMORYTYPE_HOST)
        copy.srcHost = source;
    else
        copy.srcDevice = (CUdeviceptr)source;
    copy.WidthInBytes = 16;
    copy.Height = rows % 10;
    copy.Depth = rows / 10 + 1;
    copy.srcPitch = copy.dstPitch = 64;
    copy.srcHeight = copy.dstHeight = copy.Height + (rows > 10);
    if (rows > 10) {
        copy.srcXInBytes = 4;
        copy.dstY = copy.srcZ = 1;
        copy.dstPitch = 80;
    }
    MUST(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
}

static void fill(CUgraph graph, unsigned element, size_t width, size_t height) {
    CUDA_MEMSET_NODE_PARAMS set = {data, 256, 0x21, element, width, height};
    CUgraphNode node;
    MUST(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
}

static void host(void *user) {
    called += *(int *)user;
}

static void host_node(CUgraph graph) {
    static int one = 1;
    CUgraphNode node;
    CUDA_HOST_NODE_PARAMS what = {host, &one};
    MUST(cuGraphAddHostNode(&node, graph, NULL, 0, &what));
    add_one(graph, node);
}

static void events(CUgraph graph, int made_here) {
    CUgraphNode first = add_one(graph, NULL), record, wait;
    CUevent mine = event;
    if (made_here) MUST(cuEventCreate(&mine, CU_EVENT_DISABLE_TIMING));
    MUST(cuGraphAddEventRecordNode(&record, graph, &first, 1, mine));
    MUST(cuGraphAddEventWaitNode(&wait, graph, &record, 1, mine));
    add_one(graph, wait);
    if (made_here) MUST(cuEventDestroy(mine));
}

static void freed(void *address) {
    (void)address;
}

/* A kernel that is known by the library's handle, not by a context's. */
static void library_kernel(CUgraph graph) {
    CUgraphNode node;
    void *arguments[] = {&data};
    CUDA_KERNEL_NODE_PARAMS launch = launch_of("add_one", arguments, 0, 1);
    launch.func = NULL;
    MUST(cuLibraryGetKernel(&launch.kern, library, "add_one"));
    MUST(cuGraphAddKernelNode(&node, graph, NULL, 0, &launch));
}

static void user_object(CUgraph graph) {
    CUuserObject object;
    MUST(cuUserObjectCreate(&object, NULL, freed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    MUST(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    add_one(graph, NULL);
}

static void make(CUgraph graph, const char *key) {
    void *on_device = (void *)data, *second = (void *)other, *unified = (void *)managed;
    const unsigned device = CU_MEMORYTYPE_DEVICE, host_memory = CU_MEMORYTYPE_HOST, any = CU_MEMORYTYPE_UNIFIED;
    CUgraphNode node;
#define IS(name) !strcmp(key, name)
    if (IS("shared-99"))
        shared(graph, 99 * 1024);
    else if (IS("shared-200"))
        shared(graph, 200 * 1024);
    else if (IS("cluster-8"))
        geometry(graph, 8, 0);
    else if (IS("cluster-16"))
        geometry(graph, 16, 0);
    else if (IS("cooperative"))
        geometry(graph, 0, 1);
    else if (IS("parameters"))
        many(graph);
    else if (IS("global"))
        look_up(graph, 3);
    else if (IS("programmatic"))
        programmatic(graph);
    else if (IS("empty"))
        MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    else if (IS("no-nodes"))
        return;
    else if (IS("child-3"))
        nested(graph, 3);
    else if (IS("memset-1"))
        fill(graph, 1, 7, 1);
    else if (IS("memset-2"))
        fill(graph, 2, 5, 3);
    else if (IS("memset-4"))
        fill(graph, 4, 3, 2);
    else if (IS("device-to-device"))
        copy_of(graph, device, on_device, device, second, 1);
    else if (IS("rows"))
        copy_of(graph, device, on_device, device, second, 4);
    else if (IS("layers"))
        copy_of(graph, device, on_device, device, second, 22);
    else if (IS("layers-to-host"))
        copy_of(graph, host_memory, pinned, device, on_device, 12);
    else if (IS("layers-from-host"))
        copy_of(graph, device, on_device, host_memory, ordinary, 12);
    else if (IS("jit-options"))
        look_up_in_each(graph);
    else if (IS("unified-to-unified"))
        copy_of(graph, any, on_device, any, second, 1);
    else if (IS("events"))
        events(graph, 1);
    else if (IS("library-kernel"))
        library_kernel(graph);
    else if (IS("user-object"))
        user_object(graph);
    else if (IS("shared-event"))
        events(graph, 0);
    else if (IS("updatable"))
        updatable(graph);
    else if (IS("host"))
        host_node(graph);
    else if (IS("memory"))
        graph_memory(graph);
    else if (IS("if"))
        add_one(conditional(graph, CU_GRAPH_COND_TYPE_IF, 1, 1, &node), NULL);
    else if (IS("if-not"))
        add_one(conditional(graph, CU_GRAPH_COND_TYPE_IF, 0, 1, &node), NULL);
    else if (IS("while"))
        add_one(conditional(graph, CU_GRAPH_COND_TYPE_WHILE, 0, 1, &node), NULL);
    else if (IS("switch"))
        add_one(conditional(graph, CU_GRAPH_COND_TYPE_SWITCH, 2, 3, &node), NULL);
    else if (IS("child-in-conditional"))
        nested(conditional(graph, CU_GRAPH_COND_TYPE_IF, 1, 1, &node), 2);
    else if (IS("ordinary-to-device"))
        copy_of(graph, device, on_device, host_memory, ordinary, 1);
    else if (IS("pinned-to-device"))
        copy_of(graph, device, on_device, host_memory, pinned, 1);
    else if (IS("device-to-ordinary"))
        copy_of(graph, host_memory, ordinary, device, on_device, 1);
    else if (IS("device-to-pinned"))
        copy_of(graph, host_memory, pinned, device, on_device, 1);
    else if (IS("host-to-host"))
        copy_of(graph, host_memory, pinned, host_memory, ordinary, 1);
    else if (IS("managed-to-device"))
        copy_of(graph, device, on_device, any, unified, 1);
    else if (IS("unified-from-host"))
        copy_of(graph, any, on_device, any, ordinary, 1);
    else
        exit(2);
}

/* Everything that a graph may read is the same before each. */
static void prepare(void) {
    uint32_t words[256], table[16], offset = 1000;
    CUdeviceptr address;
    for (int index = 0; index < 256; ++index) words[index] = 0x01010101u * (unsigned)(index % 16 + 1);
    MUST(cuMemcpyHtoD(other, words, sizeof words));
    MUST(cuMemsetD8(data, 0, 1024));
    memset(words, 0, sizeof words);
    words[0] = 3;
    MUST(cuMemcpyHtoD(data, words, sizeof words));
    memset(pinned, 4, 256);
    memset(ordinary, 5, 256);
    memset((void *)managed, 6, 256);
    for (unsigned index = 0; index < 16; ++index) table[index] = index * index;
    MUST(cuCtxSynchronize()); /* the stream does not wait for copies from pageable memory */
    if (!library) return;
    MUST(cuLibraryGetGlobal(&address, NULL, library, "table"));
    MUST(cuMemcpyHtoD(address, table, sizeof table));
    MUST(cuLibraryGetGlobal(&address, NULL, library, "offset"));
    MUST(cuMemcpyHtoD(address, &offset, sizeof offset));
    MUST(cuCtxSynchronize()); /* the stream does not wait for copies from pageable memory */
}

static void say_result(const char *key, const char *how) {
    unsigned char got[1024];
    unsigned long long sum = 0;
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(got, data, sizeof got));
    for (unsigned index = 0; index < sizeof got; ++index) sum = sum * 31 + got[index];
    for (int index = 0; index < 16; ++index) sum = sum * 31 + pinned[index] + ordinary[index] * 7u;
    SAY("%s %s %llx", key, how, sum + (unsigned)called);
    called = 0;
}

static void run(const char *key) {
    CUgraph graph;
    CUgraphExec exec;
    prepare();
    if (!strcmp(key, "jit-options")) load_with_options();
    if (foundry.mode() == 2) {
        foundry_graph *found = foundry.find("nodes", key);
        if (found && !foundry.wait(found)) {
            if (foundry.launch(found, stream)) exit(3);
            say_result(key, "restored");
            return;
        }
        SAY("refused %s: %s", key, foundry.reason());
    }
    MUST(cuGraphCreate(&graph, 0));
    make(graph, key);
    if (foundry.begin("nodes", key)) exit(3);
    MUST(cuGraphInstantiate(&exec, graph, 0));
    if (foundry.end("{}")) exit(3);
    MUST(cuGraphLaunch(exec, stream));
    say_result(key, "captured");
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

static void *contents(const char *path) {
    struct stat status;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status)) exit(2);
    void *bytes = malloc((size_t)status.st_size);
    if (fread(bytes, 1, (size_t)status.st_size, file) != (size_t)status.st_size) exit(2);
    fclose(file);
    return bytes;
}

/* From memory; from a file, if it is there. */
static void load(const char *path, void *image) {
    if (image)
        MUST(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    else if (!access(path + 5, R_OK))
        MUST(cuLibraryLoadFromFile(&library, path + 5, NULL, NULL, 0, NULL, NULL, 0));
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    find_interface();
    context = primary_context();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc(&data, 4096));
    MUST(cuMemAlloc(&other, 4096));
    MUST(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemHostAlloc((void **)&pinned, 4096, 0));
    ordinary = malloc(4096);
    void *image = strncmp(arguments[1], "file:", 5) ? contents(arguments[1]) : NULL;
    image_bytes = image;
    load(arguments[1], image);
    for (int index = 2; index < count; ++index) {
        if (!strcmp(arguments[index], "unload")) {
            MUST(cuLibraryUnload(library));
            library = NULL;
        } else if (!strcmp(arguments[index], "load")) {
            load(arguments[1], image);
        } else
            run(arguments[index]);
    }
    return foundry.commit();
}
