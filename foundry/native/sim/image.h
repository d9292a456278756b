// Kernel images: parsed once, made real once for each module that holds them.
#pragma once

#include "cuda_abi.h"
#include "sim_kernel.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sim {

struct ParameterPlace {
    std::size_t offset, size;
};

struct KernelText {
    std::string name;
    std::uint32_t static_shared = 0, max_dynamic_shared = 0;
    std::vector<ParameterPlace> parameters;
    std::size_t parameter_bytes() const {
        return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
    }
};

struct GlobalText {
    std::string name;
    std::size_t size = 0;
};

struct ImageFile {
    std::vector<KernelText> kernels;
    std::vector<GlobalText> globals;
    std::vector<unsigned char> object; // the ELF
};

// Reads an image, a fatbin container or its wrapper at an address whose length only the image itself tells.
CUresult parse_image(const void *image, std::shared_ptr<ImageFile> *file);
// The bytes of a file, with zeros behind that end any text in it.
CUresult read_file(const char *path, std::vector<unsigned char> *bytes);

// The shared object loaded once more, with globals of its own. Ends with the last holder.
class ImageInstance {
  public:
    static CUresult load(const ImageFile &file, std::shared_ptr<ImageInstance> *instance);
    ~ImageInstance();
    ImageInstance(const ImageInstance &) = delete;
    ImageInstance &operator=(const ImageInstance &) = delete;
    void *symbol(const std::string &name) const;

  private:
    ImageInstance() = default;
    int descriptor_ = -1;
    void *library_ = nullptr;
};

} // namespace sim
