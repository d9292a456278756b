#include "levers.h"

#include "errors.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/random.h>
#include <thread>

namespace sim {
namespace {

constexpr std::size_t row_count = static_cast<std::size_t>(Row::count);
constexpr unsigned for_ever = 3600 * 1000;

// Which calls of a function: the nth, or all from there on.
struct Which {
    long nth = 1;
    bool on = false;
    bool holds(long call) const { return call == nth || (on && call > nth); }
};

struct Failure {
    Which which;
    CUresult error = CUDA_ERROR_UNKNOWN;
};

struct Hang {
    Which which;
    unsigned milliseconds = 0;
};

struct RowLevers {
    bool masked = false;
    std::vector<Failure> failures;
    std::vector<Hang> hangs;
    std::atomic<long> calls{0};
};

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (true) {
        std::size_t end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

const char *variable(const char *name) {
    const char *value = std::getenv(name);
    return value && *value ? value : nullptr;
}

std::optional<std::size_t> row_named(std::string_view name) {
    for (std::size_t row = 0; row < row_count; ++row)
        if (name == rows[row].symbol) return row;
    return std::nullopt;
}

void warn_unknown(const char *lever, const std::string &name) {
    std::fprintf(stderr, "foundry simulator: %s names no exported function: `%s`\n", lever, name.c_str());
}

Which which_calls(const std::string &text) {
    return {std::strtol(text.c_str(), nullptr, 0), text.ends_with('+')};
}

// name:nth[+][:more][,...]
template <class Visit> void each_call(const char *lever, Visit visit) {
    const char *text = variable(lever);
    if (!text) return;
    for (const std::string &entry : split(text, ',')) {
        std::vector<std::string> parts = split(entry, ':');
        if (std::optional<std::size_t> row = row_named(parts[0]))
            visit(*row, parts.size() > 1 ? which_calls(parts[1]) : Which{}, parts.size() > 2 ? &parts[2] : nullptr);
        else
            warn_unknown(lever, parts[0]);
    }
}

// FOUNDRY_SIM_STICKY: a call after which the context is lost, as after a fault on the device.
struct Sticky {
    std::optional<std::size_t> row; // of any function if empty
    long nth = 0;                   // 0: never
    CUresult error = CUDA_ERROR_ILLEGAL_ADDRESS;
};

Sticky read_sticky() {
    Sticky sticky;
    const char *text = variable("FOUNDRY_SIM_STICKY");
    if (!text) return sticky;
    std::vector<std::string> parts = split(text, ':');
    sticky.row = row_named(parts[0]);
    if (!sticky.row && parts[0] != "any") {
        warn_unknown("FOUNDRY_SIM_STICKY", parts[0]);
        return sticky;
    }
    sticky.nth = parts.size() > 1 ? std::strtol(parts[1].c_str(), nullptr, 0) : 1;
    if (parts.size() > 2) sticky.error = error_from_text(parts[2]);
    return sticky;
}

// What a driver answers though the context is lost: it asks nothing of the device.
bool asks_no_context(std::size_t row) {
    constexpr std::string_view beginnings[] = {
        "cuInit",         "cuDriver",        "cuDevice",           "cuGetErr",         "cuGetProc",
        "cuGetExport",    "cuCtxGetCurrent", "cuCtxSetCurrent",    "cuCtxPushCurrent", "cuCtxPop",
        "cuCtxGetDevice", "cuCtxDestroy",    "cuCtxGetApiVersion", "cuThreadExchange",
    };
    const std::string_view symbol = rows[row].symbol;
    for (std::string_view beginning : beginnings)
        if (symbol.starts_with(beginning)) return true;
    return false;
}

CUresult lost_context(std::size_t row, long call) {
    static const Sticky sticky = read_sticky();
    static std::atomic<long> calls{0};
    static std::atomic<bool> lost{false};
    if (!sticky.nth || asks_no_context(row)) return CUDA_SUCCESS;
    const long all = calls.fetch_add(1, std::memory_order_relaxed) + 1;
    if ((sticky.row ? *sticky.row == row && call == sticky.nth : all == sticky.nth)) lost.store(true);
    return lost.load() ? sticky.error : CUDA_SUCCESS;
}

RowLevers *read_rows() {
    auto *table = new RowLevers[row_count];
    if (const char *text = variable("FOUNDRY_SIM_MASK"))
        for (const std::string &name : split(text, ',')) {
            if (!row_named(name)) warn_unknown("FOUNDRY_SIM_MASK", name);
            for (std::size_t row = 0; row < row_count; ++row)
                if (name == rows[row].symbol || name + "_ptsz" == rows[row].symbol ||
                    name + "_ptds" == rows[row].symbol)
                    table[row].masked = true;
        }
    each_call("FOUNDRY_SIM_FAIL", [&](std::size_t row, Which which, const std::string *error) {
        table[row].failures.push_back({which, error ? error_from_text(*error) : CUDA_ERROR_UNKNOWN});
    });
    each_call("FOUNDRY_SIM_HANG", [&](std::size_t row, Which which, const std::string *time) {
        unsigned long milliseconds = time ? std::strtoul(time->c_str(), nullptr, 0) : for_ever;
        table[row].hangs.push_back({which, static_cast<unsigned>(milliseconds)});
    });
    return table;
}

RowLevers &row_levers(Row row) {
    static RowLevers *table = read_rows();
    return table[static_cast<std::size_t>(row)];
}

void read_gpu(Levers &levers) {
    levers.gpu = "NVIDIA Simulated H200";
    const char *text = variable("FOUNDRY_SIM_GPU");
    if (!text) return;
    std::vector<std::string> parts = split(text, ':');
    levers.gpu = parts[0];
    if (parts.size() > 1) {
        int number = 0;
        for (char digit : parts[1])
            if (digit >= '0' && digit <= '9') number = number * 10 + (digit - '0');
        if (number >= 10) {
            levers.major = number / 10;
            levers.minor = number % 10;
        }
    }
    if (parts.size() > 2) levers.multiprocessors = std::atoi(parts[2].c_str());
}

Levers *read_levers() {
    auto *levers = new Levers;
    if (const char *text = variable("FOUNDRY_SIM_VERSION")) levers->version = std::atoi(text);
    if (const char *text = variable("FOUNDRY_SIM_SEED"))
        levers->seed = std::strtoull(text, nullptr, 0);
    else if (getrandom(&levers->seed, sizeof levers->seed, 0) != sizeof levers->seed)
        levers->seed = reinterpret_cast<std::uintptr_t>(levers);
    read_gpu(*levers);
    if (const char *text = variable("FOUNDRY_SIM_DEVICES")) levers->devices = std::atoi(text);
    if (const char *text = variable("FOUNDRY_SIM_MEMORY")) levers->memory = std::strtoull(text, nullptr, 0);
    if (const char *text = variable("FOUNDRY_SIM_REPORT")) levers->report = text;
    if (const char *text = variable("CUDA_MODULE_LOADING")) levers->eager = std::strcmp(text, "EAGER") == 0;
    if (const char *text = std::getenv("CUDA_VISIBLE_DEVICES")) {
        std::vector<int> visible;
        if (*text)
            for (const std::string &part : split(text, ',')) {
                char *end = nullptr;
                long ordinal = std::strtol(part.c_str(), &end, 10);
                if (end == part.c_str() || ordinal < 0 || ordinal >= levers->devices)
                    break; // as the driver does: what follows an invalid entry is not visible
                visible.push_back(static_cast<int>(ordinal));
            }
        levers->visible = visible;
    }
    return levers;
}

} // namespace

const Levers &levers() {
    static const Levers *instance = read_levers();
    return *instance;
}

bool absent(Row row) {
    return row_levers(row).masked || rows[static_cast<std::size_t>(row)].since > levers().version;
}

CUresult injected_failure(Row row) {
    RowLevers &mine = row_levers(row);
    long call = mine.calls.fetch_add(1, std::memory_order_relaxed) + 1;
    for (const Hang &hang : mine.hangs)
        if (hang.which.holds(call)) std::this_thread::sleep_for(std::chrono::milliseconds(hang.milliseconds));
    for (const Failure &failure : mine.failures)
        if (failure.which.holds(call)) return failure.error;
    return lost_context(static_cast<std::size_t>(row), call);
}

long calls_of(Row row) {
    return row_levers(row).calls.load(std::memory_order_relaxed);
}

std::uint64_t random_number() {
    static std::uint64_t state = levers().seed;
    std::uint64_t mixed = state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

} // namespace sim
