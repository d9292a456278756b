#include "image.h"

#include "image_format.h"
#include "levers.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {
namespace {

constexpr std::uint64_t largest_image = 1ull << 30;
constexpr std::uint32_t fatbin_wrapper_magic = 0x466243b1;
constexpr std::uint32_t fatbin_magic = 0xba55ed50;
constexpr std::uint16_t fatbin_kind_elf = 2;
constexpr std::uint64_t fatbin_compressed = 0xa000; // either scheme

template <class Value> Value read_at(const unsigned char *bytes) {
    Value value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

bool parse_text(const std::string &text, ImageFile *file) {
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string what;
        words >> what;
        if (what == "kernel") {
            KernelText kernel;
            std::size_t count = 0;
            words >> kernel.name >> kernel.static_shared >> kernel.max_dynamic_shared >> count;
            for (std::size_t index = 0; words && index < count; ++index) {
                ParameterPlace place{};
                char colon = 0;
                words >> place.offset >> colon >> place.size;
                kernel.parameters.push_back(place);
            }
            if (!words || kernel.parameter_bytes() > 32764) return false;
            file->kernels.push_back(std::move(kernel));
        } else if (what == "global") {
            GlobalText global;
            if (!(words >> global.name >> global.size)) return false;
            file->globals.push_back(std::move(global));
        } else {
            return false;
        }
    }
    return true;
}

CUresult parse_own(const unsigned char *bytes, std::shared_ptr<ImageFile> *file) {
    foundry_sim_image_header header;
    std::memcpy(&header, bytes, sizeof header);
    if (header.total_size > largest_image || header.elf_offset >= header.total_size ||
        header.text_size > header.elf_offset - std::min<std::uint64_t>(header.elf_offset, sizeof header))
        return CUDA_ERROR_INVALID_IMAGE;
    auto parsed = std::make_shared<ImageFile>();
    std::string text(reinterpret_cast<const char *>(bytes) + sizeof header, header.text_size);
    if (!parse_text(text, parsed.get())) return CUDA_ERROR_INVALID_IMAGE;
    parsed->object.assign(bytes + header.elf_offset, bytes + header.total_size);
    *file = std::move(parsed);
    return CUDA_SUCCESS;
}

bool is_own(const unsigned char *bytes) {
    return std::memcmp(bytes, FOUNDRY_SIM_IMAGE_MAGIC, 8) == 0;
}

// The entry for this device: same major capability, the highest minor that it has.
CUresult parse_fatbin(const unsigned char *bytes, std::shared_ptr<ImageFile> *file) {
    std::uint64_t header_size = read_at<std::uint16_t>(bytes + 6);
    std::uint64_t body_size = read_at<std::uint64_t>(bytes + 8);
    if (header_size < 16 || body_size > largest_image) return CUDA_ERROR_INVALID_IMAGE;
    const unsigned char *entry = bytes + header_size;
    std::uint64_t left = body_size;
    const unsigned char *best = nullptr;
    std::uint32_t best_architecture = 0;
    while (left >= 64) {
        std::uint64_t entry_header = read_at<std::uint32_t>(entry + 4);
        std::uint64_t payload = read_at<std::uint64_t>(entry + 8);
        if (entry_header < 64 || entry_header > left || payload > left - entry_header) return CUDA_ERROR_INVALID_IMAGE;
        std::uint32_t architecture = read_at<std::uint32_t>(entry + 28);
        bool fits = static_cast<int>(architecture / 10) == levers().major &&
                    static_cast<int>(architecture % 10) <= levers().minor;
        bool plain = (read_at<std::uint64_t>(entry + 40) & fatbin_compressed) == 0;
        if (read_at<std::uint16_t>(entry) == fatbin_kind_elf && fits && plain &&
            payload >= sizeof(foundry_sim_image_header) && is_own(entry + entry_header) &&
            architecture >= best_architecture) {
            best = entry + entry_header;
            best_architecture = architecture;
            if (read_at<std::uint64_t>(best + 8) > payload) return CUDA_ERROR_INVALID_IMAGE;
        }
        entry += entry_header + payload;
        left -= entry_header + payload;
    }
    return best ? parse_own(best, file) : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

} // namespace

CUresult parse_image(const void *image, std::shared_ptr<ImageFile> *file) {
    if (!image) return CUDA_ERROR_INVALID_VALUE;
    const auto *bytes = static_cast<const unsigned char *>(image);
    // Four bytes first: a short text (PTX) may end right behind them.
    std::uint32_t magic = read_at<std::uint32_t>(bytes);
    if (magic == fatbin_wrapper_magic) {
        std::memcpy(&bytes, bytes + 8, sizeof bytes);
        if (!bytes) return CUDA_ERROR_INVALID_IMAGE;
        magic = read_at<std::uint32_t>(bytes);
    }
    if (magic == fatbin_magic) return parse_fatbin(bytes, file);
    if (std::memcmp(&magic, FOUNDRY_SIM_IMAGE_MAGIC, 4) == 0 && is_own(bytes)) return parse_own(bytes, file);
    bool elf = std::memcmp(&magic, "\177ELF", 4) == 0;
    bool text = true;
    for (int index = 0; index < 4; ++index) {
        unsigned char letter = bytes[index];
        text = text && (letter == '\t' || letter == '\n' || letter == '\r' || (letter >= ' ' && letter < 0x7f));
    }
    return elf || text ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
}

CUresult read_file(const char *path, std::vector<unsigned char> *bytes) {
    if (!path) return CUDA_ERROR_INVALID_VALUE;
    std::FILE *stream = std::fopen(path, "rb");
    if (!stream) return CUDA_ERROR_FILE_NOT_FOUND;
    unsigned char buffer[65536];
    std::size_t got = 0;
    while ((got = std::fread(buffer, 1, sizeof buffer, stream)) > 0) bytes->insert(bytes->end(), buffer, buffer + got);
    bool failed = std::ferror(stream) != 0;
    std::fclose(stream);
    if (failed) return CUDA_ERROR_OPERATING_SYSTEM;
    foundry_sim_image_header header = {};
    std::size_t length = bytes->size();
    if (length >= sizeof header && is_own(bytes->data())) {
        std::memcpy(&header, bytes->data(), sizeof header);
        if (header.total_size > length) return CUDA_ERROR_INVALID_IMAGE;
    }
    bytes->insert(bytes->end(), 64, 0);
    return CUDA_SUCCESS;
}

CUresult ImageInstance::load(const ImageFile &file, std::shared_ptr<ImageInstance> *instance) {
    std::shared_ptr<ImageInstance> loaded(new ImageInstance);
    loaded->descriptor_ = memfd_create("foundry-sim-image", MFD_CLOEXEC);
    if (loaded->descriptor_ < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    std::size_t written = 0;
    while (written < file.object.size()) {
        ssize_t count = write(loaded->descriptor_, file.object.data() + written, file.object.size() - written);
        if (count <= 0) return CUDA_ERROR_OUT_OF_MEMORY;
        written += static_cast<std::size_t>(count);
    }
    // The descriptor stays open as long as the object: a reused number would name an object that is loaded already.
    std::string path = "/proc/self/fd/" + std::to_string(loaded->descriptor_);
    loaded->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!loaded->library_) return CUDA_ERROR_INVALID_IMAGE;
    *instance = std::move(loaded);
    return CUDA_SUCCESS;
}

ImageInstance::~ImageInstance() {
    if (library_) dlclose(library_);
    if (descriptor_ >= 0) close(descriptor_);
}

void *ImageInstance::symbol(const std::string &name) const {
    return dlsym(library_, name.c_str());
}

} // namespace sim
