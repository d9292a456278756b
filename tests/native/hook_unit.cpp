// Unit tests of the hook's parts that need no driver; built with the sanitizers and run by test_hook_units.py. argv[1]
// names the test, argv[2] a scratch folder.
#include "hook_unit.h"

#include "hook/arena.h"
#include "hook/command.h"
#include "hook/counters.h"
#include "hook/crc32c.h"
#include "hook/exec_table.h"
#include "hook/fatbin_thin.h"
#include "hook/image_key.h"
#include "hook/images.h"
#include "hook/moments.h"
#include "hook/role.h"
#include "hook/sha256.h"
#include "hook/spool.h"
#include "hook/state.h"
#include "table/row.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace foundry;

// What the spool asks of the rest of the hook.
namespace foundry {
std::string disarmed_with;
int mode() {
    return FOUNDRY_MODE_CAPTURE;
}
const char *role() {
    return "unit-0";
}
uint16_t thread_ordinal() {
    return 3;
}
void disarm(const char *reason) {
    disarmed_with = reason;
}
int driver_version() {
    return 13000;
}
const char *driver_path() {
    return "nowhere";
}
bool driver_simulated() {
    return true;
}
RealDriver real;
namespace detail {
std::atomic<int> capture_depth{0};
} // namespace detail
} // namespace foundry

namespace {

std::string hex(const uint8_t *bytes, size_t size) {
    std::string text;
    char part[3];
    for (size_t index = 0; index < size; ++index) {
        std::snprintf(part, sizeof part, "%02x", bytes[index]);
        text += part;
    }
    return text;
}

std::vector<uint8_t> pattern(size_t size) {
    std::vector<uint8_t> data(size);
    for (size_t index = 0; index < size; ++index) data[index] = static_cast<uint8_t>(index * 37 + index / 251);
    return data;
}

void test_checksums() {
    CHECK(crc32c(0, "123456789", 9) == 0xe3069283);
    uint8_t digest[32];
    sha256("abc", 3, digest);
    CHECK(hex(digest, 32) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256("", 0, digest);
    CHECK(hex(digest, 32) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    std::vector<uint8_t> data = pattern(3000);
    for (size_t size = 0; size < 400; ++size) {
        CHECK(crc32c(0, data.data(), size) == crc32c_portable(0, data.data(), size));
        CHECK(crc32c(crc32c(0, data.data(), size), data.data() + size, 77) == crc32c(0, data.data(), size + 77));
        uint8_t fast[32], slow[32];
        Sha256 quick, portable(true);
        quick.add(data.data(), size);
        portable.add(data.data(), size / 3);
        portable.add(data.data() + size / 3, size - size / 3);
        quick.finish(fast);
        portable.finish(slow);
        CHECK(std::memcmp(fast, slow, 32) == 0);
    }
}

template <typename Value> void put(std::vector<uint8_t> &bytes, size_t at, Value value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

// A container with one entry a device.
std::vector<uint8_t> make_fatbin(std::vector<uint32_t> devices, uint16_t kind = 2) {
    std::vector<uint8_t> fatbin(16 + devices.size() * 96, 0);
    put(fatbin, 0, uint32_t{0xba55ed50});
    put(fatbin, 6, uint16_t{16});
    put(fatbin, 8, uint64_t{96} * devices.size());
    for (size_t index = 0; index < devices.size(); ++index) {
        size_t at = 16 + index * 96;
        put(fatbin, at, kind);
        put(fatbin, at + 4, uint32_t{64});
        put(fatbin, at + 8, uint64_t{32});
        put(fatbin, at + 28, devices[index]);
        std::memset(fatbin.data() + at + 64, static_cast<int>(devices[index]), 32);
    }
    return fatbin;
}

void test_images() {
    CHECK(image_bytes(nullptr).size == 0);
    CHECK(image_bytes(reinterpret_cast<void *>(16)).size == 0);
    CHECK(image_bytes(reinterpret_cast<void *>(0x7fff00000000)).size == 0);
    const size_t page = 4096;
    auto *memory =
        static_cast<uint8_t *>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(memory + 2 * page, page);
    auto place = [&](const std::vector<uint8_t> &bytes) {
        uint8_t *at = memory + 2 * page - bytes.size();
        std::memcpy(at, bytes.data(), bytes.size());
        return at;
    };

    // Headers whose lengths reach past what is mapped, of every kind.
    std::vector<uint8_t> fatbin = make_fatbin({90});
    int format = 0;
    uint8_t key[32], other[32], all[32];
    CHECK(image_size(place(fatbin), &format) == fatbin.size() && format == FOUNDRY_FORMAT_FATBIN);
    image_key(place(fatbin), fatbin.size(), 90, key);
    image_key(place(fatbin), fatbin.size(), 80, other);
    sha256(fatbin.data(), fatbin.size(), all);
    CHECK(std::memcmp(key, all, 32) == 0 && std::memcmp(other, all, 32) == 0);

    // A second entry for another device: its payload is not part of the key, its header is.
    std::vector<uint8_t> two = make_fatbin({90, 80});
    image_key(place(two), two.size(), 90, key);
    two.back() ^= 1;
    image_key(place(two), two.size(), 90, other);
    CHECK(std::memcmp(key, other, 32) == 0);
    put(two, 112 + 56, uint32_t{9});
    image_key(place(two), two.size(), 90, other);
    CHECK(std::memcmp(key, other, 32) != 0);
    // Of text alone for this device, the driver may rather run what the other entry has.
    put(two, 16, uint16_t{1});
    image_key(place(two), two.size(), 90, key);
    two.back() ^= 1;
    image_key(place(two), two.size(), 90, other);
    CHECK(std::memcmp(key, other, 32) != 0);

    struct {
        uint32_t magic, version;
        const void *data, *more;
    } wrapper{0x466243b1, 1, place(fatbin), nullptr}, loop{0x466243b1, 1, &loop, nullptr};
    CHECK(image_size(&wrapper, nullptr) == fatbin.size() && image_bytes(&wrapper).data == wrapper.data);
    CHECK(image_size(&loop, nullptr) == 0);

    for (uint64_t body : {uint64_t{97}, uint64_t{1} << 33, UINT64_MAX}) {
        put(fatbin, 8, body);
        CHECK(image_size(place(fatbin), nullptr) == 0);
    }
    put(fatbin, 8, uint64_t{96});
    put(fatbin, 6, uint16_t{3});
    CHECK(image_size(place(fatbin), nullptr) == 0);
    put(fatbin, 6, uint16_t{16});
    put(fatbin, 24, UINT64_MAX - 10);
    image_key(place(fatbin), fatbin.size(), 90, key);
    CHECK(image_size(place({0x50, 0xed, 0x55, 0xba}), nullptr) == 0);

    std::vector<uint8_t> elf(64, 0);
    std::memcpy(elf.data(), "\177ELF\2\1\1", 7);
    CHECK(image_size(place(elf), &format) == 64 && format == FOUNDRY_FORMAT_ELF);
    put(elf, 60, uint16_t{2});
    put(elf, 58, uint16_t{64});
    put(elf, 40, uint64_t{64});
    CHECK(image_size(place(elf), nullptr) == 0);
    put(elf, 40, UINT64_MAX - 8);
    CHECK(image_size(place(elf), nullptr) == 0);
    elf.resize(40);
    CHECK(image_size(place(elf), nullptr) == 0);

    std::vector<uint8_t> ptx{'/', '/', ' ', 'P', 'T', 'X', '\n', 0};
    CHECK(image_size(place(ptx), &format) == ptx.size() && format == FOUNDRY_FORMAT_PTX);
    ptx.back() = ' ';
    CHECK(image_size(place(ptx), nullptr) == 0);
    CHECK(image_size(place({1, 2, 3, 4, 5, 6, 7, 8}), &format) == 0 && format == FOUNDRY_FORMAT_UNKNOWN);

    // Options that change no code don't change the key; what they are is known from before the driver was called.
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_THREADS_PER_BLOCK, CU_JIT_MAX_REGISTERS,
                              CU_JIT_CACHE_MODE};
    void *values[] = {&values, reinterpret_cast<void *>(64), reinterpret_cast<void *>((7ull << 32) | 32), nullptr};
    ImageLoad plain, loaded[3];
    plain.from_memory("// PTX\n", nullptr, nullptr, 0);
    for (unsigned count = 2; count <= 4; ++count) loaded[count - 2].from_memory("// PTX\n", options, values, count);
    values[1] = values[2] = nullptr;
    CHECK(plain.options.empty() && loaded[0].options.size() == 1 && loaded[2].options.size() == 3);
    CHECK(loaded[2].options[0].option == CU_JIT_THREADS_PER_BLOCK && loaded[2].options[0].value == 64);
    CHECK(loaded[2].options[1].option == CU_JIT_MAX_REGISTERS && loaded[2].options[1].value == 32);
    CHECK(std::memcmp(loaded[0].key, plain.key, 32) == 0 && std::memcmp(loaded[1].key, plain.key, 32) != 0);
    CHECK(std::memcmp(loaded[2].key, loaded[1].key, 32) != 0);
}

std::vector<uint8_t> read_file(const std::string &path) {
    std::vector<uint8_t> bytes(1 << 16);
    FILE *file = std::fopen(path.c_str(), "rb");
    CHECK(file);
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
    std::fclose(file);
    return bytes;
}

void test_thin(const char *folder) {
    int error = 0;
    uint32_t blob = 9;
    CHECK(spool_open(folder, &error));
    std::vector<uint8_t> fatbin = make_fatbin({80, 90, 100, 90});
    CHECK(fatbin_thin_blob(fatbin.data(), fatbin.size(), 90, &blob) && blob == 0);
    CHECK(read_file(std::string(folder) + "/blob.0") == make_fatbin({90, 90}));
    CHECK(!fatbin_thin_blob(fatbin.data(), fatbin.size(), 75, &blob));
    // What the driver compiles, or chooses among, is kept whole.
    std::vector<uint8_t> text = make_fatbin({90}, 1);
    CHECK(!fatbin_thin_blob(text.data(), text.size(), 90, &blob));
    put(fatbin, 24, UINT64_MAX);
    CHECK(!fatbin_thin_blob(fatbin.data(), fatbin.size(), 90, &blob));
}

CUgraphExec exec(uintptr_t number) {
    return reinterpret_cast<CUgraphExec>(number);
}

void test_execs() {
    CHECK(!exec_add(exec(0)) && !exec_add(exec(1)) && !exec_remove(exec(77)) && !exec_first_launch(exec(77)));
    CHECK(exec_add(exec(1000)) && exec_first_launch(exec(1000)) && !exec_first_launch(exec(1000)));
    CHECK(exec_first_change(exec(1000)) && !exec_first_change(exec(1000)));
    CHECK(exec_add(exec(1000)) && exec_first_launch(exec(1000)));
    CHECK(exec_remove(exec(1000)) && !exec_first_launch(exec(1000)));
    size_t added = 0;
    for (uintptr_t number = 0; number < 60000; ++number) added += exec_add(exec(16 * number + 4096));
    CHECK(added > 40000 && added < 60000);
    for (uintptr_t number = 0; number < 60000; ++number) exec_remove(exec(16 * number + 4096));
    // Handles that come and go for ever never fill it.
    for (uintptr_t number = 0; number < 300000; ++number) {
        CHECK(exec_add(exec(32 * number + 8192)));
        CHECK(exec_first_launch(exec(32 * number + 8192)));
        if (number >= 100) CHECK(exec_remove(exec(32 * (number - 100) + 8192)));
    }
}

void test_spool(const char *folder) {
    int error = 0;
    CHECK(!Frame(FOUNDRY_EVENT_FREE).write());
    CHECK(!spool_open("/nonexistent/folder", &error) && error == ENOENT);
    CHECK(spool_open(folder, &error));
    uint32_t blob = 7;
    std::vector<uint8_t> data = pattern(100000);
    CHECK(spool_blob(data.data(), data.size(), &blob) && blob == 0);
    std::vector<std::thread> threads;
    for (int index = 0; index < 4; ++index)
        threads.emplace_back([&data] {
            for (size_t size = 0; size < 2000; ++size) {
                Frame frame(FOUNDRY_EVENT_FINDING);
                frame.str("unit").bytes(data.data(), size % 2 ? size : 3 * size);
                CHECK(frame.write());
            }
        });
    for (std::thread &thread : threads) thread.join();
    Frame list(FOUNDRY_EVENT_COUNTERS);
    size_t at = list.size();
    list.u32(0).str("one").u64(1).str("dropped").u64(2);
    list.truncate(at + 4 + 7 + 8);
    list.patch_u32(at, 1);
    CHECK(list.write());
    finding_once("twice", "%d", 1);
    finding_once("twice", "%d", 2);
    count_named("unit_total", 5);
    count_named("unit_total", 6);
    CHECK(counter_value("unit_total") == 11 && counter_value("nothing") == 0);
    spool_close();
    CHECK(!Frame(FOUNDRY_EVENT_FREE).write() && disarmed_with.empty());
}

// The file can take no more: the frame that does not fit is taken back, the reason names the bytes.
void test_full(const char *folder) {
    int error = 0;
    CHECK(spool_open(folder, &error));
    rlimit limit{3000, 3000};
    std::signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    std::vector<uint8_t> data = pattern(1000);
    int written = 0;
    while (Frame(FOUNDRY_EVENT_FINDING).str("unit").bytes(data.data(), data.size()).write()) ++written;
    CHECK(written == 2 && !spool_is_open());
    CHECK(disarmed_with.find("1028 bytes") != std::string::npos);
    std::printf("%s\n", disarmed_with.c_str());
}

// An emulator tells a process other things of itself than of others.
bool told_alike() {
    const uint64_t own = start_of(getpid());
    const pid_t child = fork();
    if (!child) _exit(start_of(getppid()) == own ? 0 : 1);
    int status = 1;
    return waitpid(child, &status, 0) == child && status == 0;
}

template <typename Claims> void test_beside(const char *folder, const Claims &claims, const std::string &beside) {
    setenv("RANK", "5", 1);
    int over[2];
    CHECK(pipe(over) == 0);
    const pid_t child = fork();
    if (!child) {
        char byte;
        close(over[1]);
        _exit(claims("rank-5") && beside.empty() && read(over[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(over[0]);
    while (access((std::string(folder) + "/rank-5/process").c_str(), F_OK)) usleep(1000);
    CHECK(claims("rank-5.1") && beside == "rank-5");
    close(over[1]);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(claims("rank-5.2") && beside.empty());
}

void test_roles(const char *folder) {
    char role[256], place[4096];
    std::string beside;
    auto claims = [&](const char *expected) {
        beside.clear();
        return role_claim(folder, role, sizeof role, place, sizeof place, beside) == 0 && std::string(role) == expected;
    };
    unsetenv("RANK");
    CHECK(claims("hook_unit-0") && beside.empty());
    CHECK(claims("hook_unit-1") && beside.empty()); // both are this process
    if (told_alike()) test_beside(folder, claims, beside);
    for (const char *who : {"1 1 00000000 init", "2147483646 1 00000000 hook_unit"}) { // another by now, and none
        setenv("RANK", who[1] == ' ' ? "1" : "2", 1);
        const std::string gone = std::string(folder) + "/rank-" + getenv("RANK");
        CHECK(mkdir(gone.c_str(), 0700) == 0);
        std::ofstream(gone + "/process") << who;
        CHECK(claims((std::string("rank-") + getenv("RANK") + ".1").c_str()) && beside.empty());
    }
    setenv("RANK", "3", 1);
    CHECK(claims("rank-3"));
    CHECK(mkdir((std::string(folder) + "/rank-3.1").c_str(), 0700) == 0);
    CHECK(claims("rank-3.2") && beside == "rank-3.1"); // it has not said yet who it is
    setenv("RANK", "../ä", 1);
    CHECK(claims("rank-..___"));
    CHECK(role_claim("/nonexistent", role, sizeof role, place, sizeof place, beside) == ENOENT);
}

std::map<std::string, uint64_t> moments() {
    std::map<std::string, uint64_t> found;
    moments_each([](const char *name, uint64_t nanoseconds,
                    void *user) { (*static_cast<decltype(found) *>(user))[name] = nanoseconds; },
                 &found);
    return found;
}

void test_moments() {
    CHECK(moments().empty());
    moment_first(Moment::first_graph);
    moment_last(Moment::last_graph);
    auto before = moments();
    CHECK(before.size() == 2 && before["at_first_graph_ns"] <= before["at_last_graph_ns"]);
    moment_first(Moment::first_graph);
    moment_last(Moment::last_graph);
    auto later = moments();
    CHECK(later["at_first_graph_ns"] == before["at_first_graph_ns"]);
    CHECK(later["at_last_graph_ns"] > before["at_last_graph_ns"]);
    moments_commit();
    moment_last(Moment::last_graph);
    auto committed = moments();
    CHECK(committed["at_last_graph_ns"] == later["at_last_graph_ns"]);
    CHECK(committed["at_commit_ns"] > later["at_last_graph_ns"]);
    moments_commit();
    CHECK(moments()["at_last_graph_ns"] > later["at_last_graph_ns"]);
    moments_forget();
    CHECK(moments().empty());
    // A graph that came after the commit was not before it.
    moments_commit();
    moment_last(Moment::last_graph);
    CHECK(moments().size() == 1);
}

} // namespace

int main(int count, char **arguments) {
    if (count < 3) return 2;
    std::string test = arguments[1];
    if (test == "checksums") test_checksums();
    if (test == "placement") test_placement();
    if (test == "claims") test_claims();
    if (test == "images") test_images();
    if (test == "thin") test_thin(arguments[2]);
    if (test == "execs") test_execs();
    if (test == "spool") test_spool(arguments[2]);
    if (test == "full") test_full(arguments[2]);
    if (test == "roles") test_roles(arguments[2]);
    if (test == "moments") test_moments();
    return 0;
}
