// May the image be used on this machine: what only the driver can tell. Codes and words are those of foundry/compat,
// which says beforehand what happens here.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "../hook/spool.h"
#include "../hook/state.h"
#include "../table/real_dlsym.h"
#include "../table/row.h"
#include "session.h"

namespace foundry::restore {
namespace {

constexpr uint32_t virtual_memory_flag = 1, mig_flag = 2;

enum class Weight { never, refused }; // never: not even if its code is allowed

bool allowed(std::string_view code) {
    const char *text = getenv("FOUNDRY_ALLOW");
    std::string_view rest = text ? text : "";
    while (!rest.empty()) {
        size_t end = std::min(rest.find(','), rest.size());
        if (rest.substr(0, end) == code) return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

// What differs, each code once.
class Differences {
  public:
    void add(const char *code, Weight weight, const std::string &what, const std::string &captured,
             const std::string &here) {
        if (captured == here) return;
        if (std::find(codes_.begin(), codes_.end(), code) != codes_.end()) return;
        codes_.emplace_back(code);
        std::string &text = weight == Weight::refused && allowed(code) ? passed_ : refused_;
        if (!text.empty()) text += "; ";
        text += std::string(code) + ": " + what + ": archive " + captured + ", here " + here;
    }

    // Also tells the spool what was let pass, unless something was not.
    Reason refused() const {
        if (refused_.empty() && !passed_.empty()) finding("mismatch-allowed", "%s", passed_.c_str());
        return refused_;
    }

  private:
    std::vector<std::string> codes_;
    Reason refused_, passed_;
};

std::string version_text(uint32_t version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

const char *kind_text(bool simulated) {
    return simulated ? "the simulator" : "a real driver";
}

const char *yes(bool value) {
    return value ? "yes" : "no";
}

bool on_simulator() {
    void *library = dlopen(driver_path(), RTLD_NOW | RTLD_NOLOAD);
    const bool simulated = library && real_dlsym()(library, "foundry_sim_version");
    if (library) dlclose(library);
    return simulated;
}

// What the driver says of one GPU.
struct Asked {
    char name[256] = "";
    int major = 0, minor = 0, multiprocessors = 0, virtual_memory = 0;
    Reason fault;

    Asked(uint32_t ordinal, CUdevice *handle) {
        ask("cuDeviceGet", drive(real.cuDeviceGet, handle, static_cast<int>(ordinal)));
        if (!fault.empty()) return;
        ask("cuDeviceGetName", drive(real.cuDeviceGetName, name, static_cast<int>(sizeof name) - 1, *handle));
        attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, *handle);
        attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, *handle);
        attribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, *handle);
        attribute(&virtual_memory, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, *handle);
    }

  private:
    void attribute(int *value, CUdevice_attribute which, CUdevice handle) {
        ask("cuDeviceGetAttribute", drive(real.cuDeviceGetAttribute, value, which, handle));
    }

    void ask(const char *function, CUresult result) {
        if (result && fault.empty()) fault = driver_error(function, result);
    }
};

} // namespace

Reason Session::gate() {
    const auto &header = image->header();
    const auto driver = static_cast<uint32_t>(driver_version());
    Differences found;
    found.add("mismatch-simulated", Weight::never, "simulated", kind_text(header.simulated), kind_text(on_simulator()));
    if (driver < header.driver_version)
        found.add("mismatch-driver", Weight::refused, "CUDA of the driver", version_text(header.driver_version),
                  version_text(driver));

    // Devices with no range were seen by the captured program, and not used.
    const bool ranges = std::any_of(image->devices().begin(), image->devices().end(),
                                    [](const auto &entry) { return entry.base != 0; });
    int count = 0;
    if (CUresult result = drive(real.cuDeviceGetCount, &count))
        found.add("host-no-driver", Weight::never, "driver", "needs one", driver_error("cuDeviceGetCount", result));
    for (DeviceState &state : devices) {
        const auto &expected = *image->device(state.ordinal);
        if (ranges && !expected.base) continue;
        if (static_cast<int64_t>(state.ordinal) >= count) {
            found.add("host-devices", Weight::never, "number of GPUs", std::to_string(state.ordinal + 1) + " or more",
                      std::to_string(count));
            continue;
        }
        const std::string where = "GPU " + std::to_string(state.ordinal) + ": ";
        const Asked here(state.ordinal, &state.handle);
        if (!here.fault.empty()) {
            found.add("host-no-driver", Weight::never, where + "driver", "needs one", here.fault);
            continue;
        }
        found.add("mismatch-gpu-model", Weight::refused, where + "GPU model", image->string(expected.name), here.name);
        found.add("mismatch-compute-capability", Weight::never, where + "compute capability",
                  std::to_string(expected.compute_major) + "." + std::to_string(expected.compute_minor),
                  std::to_string(here.major) + "." + std::to_string(here.minor));
        found.add("mismatch-multiprocessors", Weight::refused, where + "multiprocessors",
                  std::to_string(expected.multiprocessors), std::to_string(here.multiprocessors));
        found.add("mismatch-mig", Weight::refused, where + "MIG slice", yes(expected.flags & mig_flag),
                  yes(strstr(here.name, "MIG")));
        if (!here.virtual_memory)
            found.add("host-virtual-memory", Weight::never, where + "virtual memory",
                      expected.flags & virtual_memory_flag ? "yes" : "never", "no");
    }
    return found.refused();
}

} // namespace foundry::restore
