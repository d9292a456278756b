/* Two ranks share memory by handle, as engines do for their own all-reduce. argv[1] says what they try; both say what
 * they see, rank 1 after rank 0. What is said depends on the driver's answers alone, not on who gives them. */
#define _GNU_SOURCE
#include "interface.h"
#include "program.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LAZY = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, MEBIBYTE = 1 << 20, FEW = 40, MANY = 2000, THREADS = 8 };

static int rank, devices = 1;
static int to[2], from[2];
static pid_t other;

static void give(const void *bytes, size_t size) {
    if (write(to[1], bytes, size) != (ssize_t)size) exit(4);
}

static void take(void *bytes, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t more = read(from[0], (char *)bytes + got, size - got);
        if (more <= 0) exit(5);
        got += (size_t)more;
    }
}

/* A memset may return before its bytes are there: called before the other rank is told of them. */
static void written(void) {
    MUST(cuCtxSynchronize());
}

static void meet(void) {
    char token = 0;
    give(&token, 1);
    take(&token, 1);
}

static void on_device(int ordinal) {
    CUdevice device;
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, ordinal));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
}

static CUdeviceptr allocate(size_t size) {
    CUdeviceptr address;
    MUST(cuMemAlloc(&address, size));
    MUST(cuMemsetD8(address, 0, size));
    written();
    return address;
}

static uint32_t word(CUdeviceptr address) {
    uint32_t value = 0;
    MUST(cuMemcpyDtoH(&value, address, sizeof value));
    return value;
}

static CUipcMemHandle handle_of(CUdeviceptr address) {
    CUipcMemHandle handle;
    memset(&handle, 0, sizeof handle);
    MUST(cuIpcGetMemHandle(&handle, address));
    return handle;
}

static CUdeviceptr opened(CUipcMemHandle handle) {
    CUdeviceptr address = 0;
    MUST(cuIpcOpenMemHandle(&address, handle, LAZY));
    return address;
}

static CUresult try_to_open(CUipcMemHandle handle) {
    CUdeviceptr address = 0;
    return cuIpcOpenMemHandle(&address, handle, LAZY);
}

static int files(const char *named) {
    int count = 0;
    char path[300], target[300];
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        count += length > 0 && strstr(target, named) != NULL;
    }
    closedir(folder);
    return count;
}

/* A graph that sets words to a value, from the archive where that has it. */
static void graph_sets(const char *key, CUdeviceptr target, unsigned value) {
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    foundry_graph *found = foundry.mode() == 2 ? foundry.find("sharing", key) : NULL;
    int restored = found && !foundry.wait(found);
    if (restored) {
        if (foundry.launch(found, stream)) exit(3);
    } else {
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        MUST(cuMemsetD32Async(target, value, 4, stream));
        MUST(cuStreamEndCapture(stream, &graph));
        if (foundry.begin("sharing", key)) exit(3);
        MUST(cuGraphInstantiate(&exec, graph, 0));
        if (foundry.end("{}")) exit(3);
        MUST(cuGraphLaunch(exec, stream));
    }
    MUST(cuStreamSynchronize(stream));
    SAY("rank %d %s %s", rank, key, restored ? "restored" : "captured");
}

static void exchange(void) {
    struct {
        CUipcMemHandle large, small;
        size_t offset;
    } mine, theirs;
    CUdeviceptr large = allocate(5 * MEBIBYTE), first = allocate(512), small = allocate(4096), base = 0, start = 0;
    CUdeviceptr inside = large + 3 * MEBIBYTE + 64;
    size_t size = 0, range = 0;
    unsigned capable = 9, capable_of_opened = 9;
    int device = -1;
    unsigned long long types = 9;
    CUmemGenericAllocationHandle physical;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    void *answers[] = {&start, &range, &capable_of_opened};

    /* As `register_graph_buffers` does. */
    MUST(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
    mine.large = handle_of(base);
    mine.offset = inside - base;
    mine.small = handle_of(small);
    CUipcMemHandle again = handle_of(large);
    MUST(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, small));
    MUST(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, small));
    SAY("rank %d offset %zu same %d capable %u types %llu own %d retain %d", rank, mine.offset,
        !memcmp(&mine.large, &again, sizeof again), capable, types, try_to_open(mine.large),
        cuMemRetainAllocationHandle(&physical, (void *)small));
    memset(&again, 0, sizeof again);
    int interior = cuIpcGetMemHandle(&again, small + 100);
    SAY("rank %d interior %d same %d", rank, interior, !memcmp(&mine.small, &again, sizeof again));
    give(&mine, sizeof mine);
    take(&theirs, sizeof theirs);

    CUdeviceptr their_large = opened(theirs.large), their_small = opened(theirs.small);
    CUdeviceptr their_inside = their_large + theirs.offset;
    MUST(cuMemGetAddressRange(&base, &size, their_inside));
    MUST(cuPointerGetAttributes(3, wanted, answers, their_small + 8));
    MUST(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, their_inside));
    SAY("rank %d device %d", rank, device);
    SAY("rank %d again %d range %d %zu small %d %zu %u bad-flags %d get %d free %d retain %d", rank,
        opened(theirs.large) == their_large, base == their_large, size, start == their_small, range, capable_of_opened,
        cuIpcOpenMemHandle(&base, theirs.large, 0), cuIpcGetMemHandle(&again, their_small), cuMemFree(their_large),
        cuMemRetainAllocationHandle(&physical, (void *)their_small));
    graph_sets("own", first, 5 + (unsigned)rank);
    graph_sets("peer", their_inside, 100 + (unsigned)rank);
    MUST(cuMemsetD32(their_small + 4092, 200 + (unsigned)rank, 1));
    written();
    meet();
    SAY("rank %d own %u from-peer %u %u", rank, word(first + 12), word(inside + 12), word(small + 4092));
    SAY("rank %d their %u %u", rank, word(their_inside), word(their_small + 4092));
    meet();
    int first_close = cuIpcCloseMemHandle(their_large);
    uint32_t still = word(their_large + theirs.offset);
    int second_close = cuIpcCloseMemHandle(their_large);
    SAY("rank %d close %d still %u %d more %d inner %d own %d", rank, first_close, still, second_close,
        cuIpcCloseMemHandle(their_large), cuIpcCloseMemHandle(their_small + 512), cuIpcCloseMemHandle(small));
    MUST(cuIpcCloseMemHandle(their_small));
    SAY("rank %d unknown %d", rank, cuMemGetAddressRange(&base, &size, their_small));
    MUST(cuMemFree(large));
    MUST(cuMemFree(small));
}

static void freed(void) {
    CUipcMemHandle handles[2];
    if (rank == 0) {
        CUdeviceptr data = allocate(2 * MEBIBYTE), gone = allocate(2 * MEBIBYTE);
        MUST(cuMemsetD32(data, 7, 1));
        written();
        handles[0] = handle_of(data);
        handles[1] = handle_of(gone);
        MUST(cuMemFree(gone));
        give(handles, sizeof handles);
        meet();
        MUST(cuMemFree(data));
        data = allocate(2 * MEBIBYTE);
        MUST(cuMemsetD32(data, 8, 1));
        written();
        handles[1] = handle_of(data);
        SAY("rank 0 other %d", memcmp(&handles[0], &handles[1], sizeof handles[0]) != 0);
        meet();
        meet();
        SAY("rank 0 kept %u", word(data));
        return;
    }
    take(handles, sizeof handles);
    CUdeviceptr data = opened(handles[0]);
    SAY("rank 1 gone %d", try_to_open(handles[1]));
    meet();
    meet();
    MUST(cuMemsetD32(data + 4, 9, 1));
    SAY("rank 1 still %u %u", word(data), word(data + 4));
    SAY("rank 1 close %d", cuIpcCloseMemHandle(data));
    SAY("rank 1 anew %d", try_to_open(handles[0]));
    meet();
}

/* `child`: of the owner lives on; `stopped`: the owner does not answer, and does not end. */
static void killed(int child, int stopped) {
    CUipcMemHandle handles[2];
    pid_t left = 0;
    if (rank == 0) {
        handles[0] = handle_of(allocate(4096));
        handles[1] = handle_of(allocate(3 * MEBIBYTE));
        give(handles, sizeof handles);
        if (child) {
            SAY("files of the owner %d", files("foundry-sim-shared"));
            if ((left = fork()) == 0) {
                alarm(100);
                SAY("files of its child %d", files("foundry-sim-shared"));
                left = getpid();
                give(&left, sizeof left);
            }
        }
        for (;;) pause();
    }
    take(handles, sizeof handles);
    if (child) take(&left, sizeof left);
    CUdeviceptr data = opened(handles[0]);
    MUST(cuMemsetD32(data, 3, 1));
    kill(other, stopped ? SIGSTOP : SIGKILL);
    waitpid(other, NULL, WUNTRACED);
    SAY("rank 1 owner-gone %d still %u", try_to_open(handles[1]), word(data));
    if (stopped) kill(other, SIGKILL);
    if (left) kill(left, SIGKILL);
    SAY("rank 1 close %d", cuIpcCloseMemHandle(data));
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void many(void) {
    CUipcMemHandle handle, one;
    CUdeviceptr data = allocate(8 * MEBIBYTE);
    int differ = 0;
    double begin = seconds();
    handle = handle_of(data);
    for (int index = 0; index < MANY; ++index) {
        one = handle_of(data + 64 * (size_t)index);
        differ += memcmp(&one, &handle, sizeof one) != 0;
    }
    give(&handle, sizeof handle);
    take(&one, sizeof one);
    CUdeviceptr theirs = opened(one);
    for (int index = 1; index < MANY; ++index) differ += opened(one) != theirs;
    meet();
    for (int index = 1; index < MANY; ++index) MUST(cuIpcCloseMemHandle(theirs));
    SAY("rank %d differ %d fast %d word %u", rank, differ, seconds() - begin < 1, word(theirs));
    meet();
    MUST(cuIpcCloseMemHandle(theirs));
}

static void leaks(void) {
    int before = 0, after = 0;
    size_t free_before = 0, free_after = 0, total;
    for (int round = 0; round < FEW; ++round) {
        CUipcMemHandle handles[3], theirs[3];
        CUdeviceptr mine[3] = {allocate(512), allocate(4096), allocate(3 * MEBIBYTE)}, here[3];
        for (int index = 0; index < 3; ++index) handles[index] = handle_of(mine[index]);
        give(handles, sizeof handles);
        take(theirs, sizeof theirs);
        for (int index = 0; index < 3; ++index) here[index] = opened(theirs[index]);
        meet();
        for (int index = 0; index < 3; ++index) MUST(cuIpcCloseMemHandle(here[index]));
        for (int index = 0; index < 3; ++index) MUST(cuMemFree(mine[index]));
        meet();
        after = files("");
        MUST(cuMemGetInfo(&free_after, &total));
        meet();
        if (round == 2) before = after, free_before = free_after;
    }
    SAY("rank %d files %d memory %d", rank, after - before, free_before == free_after);
}

/* During a capture: opening and closing neither disturb it nor wait. */
static void in_capture(void) {
    CUipcMemHandle handle, theirs;
    CUstream stream;
    CUgraph graph;
    CUdeviceptr data = allocate(4096);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    handle = handle_of(data);
    give(&handle, sizeof handle);
    take(&theirs, sizeof theirs);
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUdeviceptr here = opened(theirs);
    MUST(cuMemsetD32Async(data, 1, 4, stream));
    CUdeviceptr inner;
    MUST(cuMemAlloc(&inner, 4096));
    handle = handle_of(inner);
    SAY("rank %d close %d", rank, cuIpcCloseMemHandle(here));
    SAY("rank %d end %d", rank, cuStreamEndCapture(stream, &graph));
    here = opened(theirs);
    SAY("rank %d word %u", rank, word(here));
    MUST(cuIpcCloseMemHandle(here));
    meet();
}

static CUipcMemHandle storm_handles[4];
static CUcontext storm_context;

static void *storm_thread(void *argument) {
    unsigned state = (unsigned)(uintptr_t)argument;
    MUST(cuCtxSetCurrent(storm_context));
    for (int round = 0; round < 100; ++round) {
        CUdeviceptr here = opened(storm_handles[rand_r(&state) % 4]), own, base;
        size_t size;
        MUST(cuMemAlloc(&own, 4096));
        handle_of(own);
        MUST(cuMemGetAddressRange(&base, &size, here + 8));
        if (base != here || word(here) != 77) exit(6);
        MUST(cuIpcCloseMemHandle(here));
        MUST(cuMemFree(own));
    }
    return NULL;
}

static void storm(void) {
    CUipcMemHandle mine[4];
    pthread_t threads[THREADS];
    MUST(cuCtxGetCurrent(&storm_context));
    for (int index = 0; index < 4; ++index) {
        CUdeviceptr data = allocate(index < 2 ? 4096 : 2 * MEBIBYTE);
        MUST(cuMemsetD32(data, 77, 1));
        written();
        mine[index] = handle_of(data);
    }
    give(mine, sizeof mine);
    take(storm_handles, sizeof storm_handles);
    for (uintptr_t index = 0; index < THREADS; ++index)
        pthread_create(&threads[index], NULL, storm_thread, (void *)(index + 1));
    for (int index = 0; index < THREADS; ++index) pthread_join(threads[index], NULL);
    SAY("rank %d storm over", rank);
    meet();
}

/* The opener destroys the context that it opened in. */
static void context_gone(void) {
    CUipcMemHandle mine, theirs;
    CUcontext context;
    CUdeviceptr base;
    size_t size;
    mine = handle_of(allocate(4096));
    give(&mine, sizeof mine);
    take(&theirs, sizeof theirs);
    MUST(cuCtxCreate(&context, NULL, 0, rank % devices));
    CUdeviceptr here = opened(theirs);
    MUST(cuCtxDestroy(context));
    SAY("rank %d gone %d", rank, cuMemGetAddressRange(&base, &size, here));
    SAY("rank %d close %d", rank, cuIpcCloseMemHandle(here));
    meet();
}

/* What is refused is tried once more. */
static void refused(void) {
    CUipcMemHandle mine, theirs;
    CUdeviceptr data = allocate(4096), here = 0, streamed;
    memset(&mine, 0, sizeof mine);
    MUST(cuMemAllocAsync(&streamed, 4096, NULL));
    SAY("rank %d streamed %d", rank, cuIpcGetMemHandle(&theirs, streamed));
    int first = cuIpcGetMemHandle(&mine, data);
    int second = first ? cuIpcGetMemHandle(&mine, data) : 0;
    unsigned capable = 9;
    MUST(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, data));
    give(&mine, sizeof mine);
    take(&theirs, sizeof theirs);
    int open_first = try_to_open(theirs);
    SAY("rank %d get %d %d capable %u open %d %d", rank, first, second, capable, open_first,
        open_first ? cuIpcOpenMemHandle(&here, theirs, LAZY) : 0);
    meet();
}

/* How fast a rank copies to the other's memory, and from it. */
static void speed(void) {
    CUipcMemHandle mine, theirs;
    size_t size = (size_t)256 * MEBIBYTE;
    CUdeviceptr data = allocate(size), own = allocate(size);
    double rates[2];
    mine = handle_of(data);
    give(&mine, sizeof mine);
    take(&theirs, sizeof theirs);
    CUdeviceptr here = opened(theirs);
    for (int turn = 0; turn < 2; ++turn) { /* one after the other */
        for (int reads = 0; reads < 2 && turn == rank; ++reads) {
            double begin = 0;
            for (int round = 0; round < FEW; ++round) {
                if (round == FEW / 4) {
                    MUST(cuCtxSynchronize());
                    begin = seconds();
                }
                MUST(cuMemcpyDtoDAsync(reads ? own : here, reads ? here : own, size, NULL));
            }
            MUST(cuCtxSynchronize());
            rates[reads] = (double)size * (FEW - FEW / 4) / (seconds() - begin) / 1e9;
        }
        meet();
    }
    SAY("speed %d write %.1f read %.1f GB/s", rank, rates[0], rates[1]);
    MUST(cuIpcCloseMemHandle(here));
}

/* Alone: a handle to stdout until stdin says something, and one from stdin. */
static int alone(int gives) {
    CUipcMemHandle handle;
    CUdeviceptr data = 0;
    primary_context();
    if (gives) {
        data = allocate(4096);
        MUST(cuMemsetD32(data, 42, 1));
        written();
        handle = handle_of(data);
        if (write(1, &handle, sizeof handle) != sizeof handle) return 4;
        return read(0, &handle, 1) == 1 ? 0 : 5;
    }
    if (read(0, &handle, sizeof handle) != sizeof handle) return 5;
    CUresult result = cuIpcOpenMemHandle(&data, handle, LAZY);
    if (result)
        SAY("open %d", result);
    else
        SAY("open 0 word %u", word(data));
    return 0;
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "exchange";
    int up[2], down[2];
    devices = count > 2 ? atoi(arguments[2]) : 1;
    find_interface();
    if (!strcmp(what, "give") || !strcmp(what, "take")) return alone(!strcmp(what, "give"));
    if (pipe(up) || pipe(down)) return 2;
    pid_t parent = getpid(), child = fork();
    rank = child ? 1 : 0; /* the parent is the one that survives */
    other = child ? child : parent;
    if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(100);
    memcpy(to, rank ? down : up, sizeof to);
    memcpy(from, rank ? up : down, sizeof from);
    close(to[0]);
    close(from[1]);
    setenv("RANK", rank ? "1" : "0", 1);
    on_device(rank % devices);
    graph_sets("start", allocate(512), 1);
    meet();
    if (!strcmp(what, "exchange")) exchange();
    if (!strcmp(what, "freed")) freed();
    if (!strcmp(what, "killed")) killed(0, 0);
    if (!strcmp(what, "forked")) killed(1, 0);
    if (!strcmp(what, "stopped")) killed(0, 1);
    if (!strcmp(what, "many")) many();
    if (!strcmp(what, "leaks")) leaks();
    if (!strcmp(what, "in-capture")) in_capture();
    if (!strcmp(what, "storm")) storm();
    if (!strcmp(what, "context")) context_gone();
    if (!strcmp(what, "refused")) refused();
    if (!strcmp(what, "speed")) speed();
    int status = 0;
    if (rank && waitpid(other, &status, 0) == other && WIFEXITED(status)) return WEXITSTATUS(status);
    return 0;
}
