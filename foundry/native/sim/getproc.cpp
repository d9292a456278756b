// cuGetProcAddress: a base name and a version give the newest ABI that is not newer than the version.
#include "levers.h"

#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sim {
namespace {

struct Candidate {
    Row row;
    bool per_thread;
};

std::string_view without_suffix(std::string_view name, std::string_view suffix) {
    if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix)
        name.remove_suffix(suffix.size());
    return name;
}

std::string_view base_name(std::string_view name) {
    name = without_suffix(without_suffix(name, "_ptsz"), "_ptds");
    std::size_t at = name.rfind("_v");
    if (at != std::string_view::npos && at + 3 == name.size() && name[at + 2] >= '2' && name[at + 2] <= '9')
        name = name.substr(0, at);
    return name;
}

using Index = std::unordered_map<std::string, std::vector<Candidate>>;

const Index &index() {
    static const Index *built = [] {
        auto *result = new Index;
        for (unsigned row = 0; row < static_cast<unsigned>(Row::count); ++row) {
            std::string_view name = rows[row].symbol;
            bool per_thread = without_suffix(without_suffix(name, "_ptsz"), "_ptds") != name;
            (*result)[std::string(base_name(name))].push_back({static_cast<Row>(row), per_thread});
        }
        return result;
    }();
    return *built;
}

CUresult look_up(const char *symbol, void **address, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult *status) {
    if (!symbol || !address) return CUDA_ERROR_INVALID_VALUE;
    *address = nullptr;
    // cudart asks for the empty name and takes the answer for the query function itself.
    std::string name = *symbol ? symbol : "cuGetProcAddress";
    bool want_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    auto set_status = [&](CUdriverProcAddressQueryResult value) {
        if (status) *status = value;
    };
    auto found = index().find(name);
    bool exists = false;
    const RowInfo *best = nullptr;
    bool best_per_thread = false;
    if (found != index().end())
        for (const Candidate &candidate : found->second) {
            if (absent(candidate.row) || (candidate.per_thread && !want_per_thread)) continue;
            exists = true;
            const RowInfo &row = rows[static_cast<unsigned>(candidate.row)];
            if (row.since > version) continue;
            bool newer = !best || row.since > best->since ||
                         (row.since == best->since && candidate.per_thread && !best_per_thread);
            if (newer) {
                best = &row;
                best_per_thread = candidate.per_thread;
            }
        }
    if (best) {
        *address = best->address;
        set_status(CU_GET_PROC_ADDRESS_SUCCESS);
        return CUDA_SUCCESS;
    }
    set_status(exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    return CUDA_ERROR_NOT_FOUND;
}

} // namespace
} // namespace sim

CUresult sim::cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    return look_up(symbol, pfn, cudaVersion, flags, nullptr);
}

CUresult sim::cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *symbolStatus) {
    return look_up(symbol, pfn, cudaVersion, flags, symbolStatus);
}
