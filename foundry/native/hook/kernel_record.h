// What the spool says of a kernel, once, and again when its attributes changed.
#ifndef FOUNDRY_HOOK_KERNEL_RECORD_H
#define FOUNDRY_HOOK_KERNEL_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../table/real.h"

namespace foundry {

struct KernelRecord {
    uint64_t handle = 0; // as nodes name it: the kernel, else the function
    uint64_t image = 0;
    std::string name;
    std::vector<std::pair<uint32_t, uint32_t>> parameters; // offset, size
    uint32_t parameter_bytes = 0;
    std::string reason; // non-empty: nodes of it cannot be rebuilt, and why
};

struct KernelSeen {
    KernelRecord record;
    std::vector<std::pair<uint32_t, int32_t>> attributes; // the settable ones, as they stood
    bool failed = false; // a question to the driver did: for this graph alone, and not for the spool
};

// One recording of a graph: asks the driver once for each kernel.
class KernelRecorder {
  public:
    explicit KernelRecorder(CUdevice device) : device_(device) {}
    // `kernel` may be null on older drivers; `function` may be null with it. The answer lives as long as this object.
    const KernelRecord &record(CUkernel kernel, CUfunction function);
    // KERNEL for each that the spool does not have as it was when it was recorded here.
    void write() const;

  private:
    std::vector<std::shared_ptr<const KernelSeen>> order_; // by first use
    std::vector<std::pair<uint64_t, size_t>> places_;      // handle, place in order_; sorted
    CUdevice device_;
};

void kernel_records_forget();

} // namespace foundry

#endif
