// A restore image in memory: read-only, checked once as a whole, then read without further checks.
#pragma once

#include "../abi/image_format.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace foundry::restore {

// Views into the mapped file. Only a view that check_image accepted may be used: every index in it is in range
// then.
struct Image {
    const uint8_t *bytes = nullptr;
    size_t size = 0;
    std::string path;                   // of the file that is mapped
    std::chrono::nanoseconds waited{0}; // for the file

    const foundry_image_header &header() const { return *reinterpret_cast<const foundry_image_header *>(bytes); }
    template <typename Entry> std::span<const Entry> section(foundry_section which) const {
        const foundry_image_section &section = header().sections[which];
        return {reinterpret_cast<const Entry *>(bytes + section.offset), static_cast<size_t>(section.count)};
    }

    const char *string(uint32_t offset) const { return section<char>(FOUNDRY_SECTION_STRINGS).data() + offset; }
    auto devices() const { return section<foundry_image_device>(FOUNDRY_SECTION_DEVICES); }
    auto log() const { return section<foundry_image_log_entry>(FOUNDRY_SECTION_LOG); }
    auto allocations() const { return section<foundry_image_allocation>(FOUNDRY_SECTION_ALLOCATIONS); }
    auto mappings() const { return section<foundry_image_mapping>(FOUNDRY_SECTION_MAPPINGS); }
    auto blobs() const { return section<foundry_image_blob>(FOUNDRY_SECTION_BLOBS); }
    auto blob_bytes() const { return section<uint8_t>(FOUNDRY_SECTION_BLOB_BYTES); }
    auto images() const { return section<foundry_image_kernel_image>(FOUNDRY_SECTION_IMAGES); }
    auto image_options() const { return section<foundry_image_option>(FOUNDRY_SECTION_IMAGE_OPTIONS); }
    auto kernels() const { return section<foundry_image_kernel>(FOUNDRY_SECTION_KERNELS); }
    auto parameters() const { return section<foundry_image_parameter>(FOUNDRY_SECTION_PARAMETERS); }
    auto attributes() const { return section<foundry_image_attribute>(FOUNDRY_SECTION_ATTRIBUTES); }
    auto groups() const { return section<foundry_image_group>(FOUNDRY_SECTION_GROUPS); }
    auto nodes() const { return section<foundry_image_node>(FOUNDRY_SECTION_NODES); }
    auto edges() const { return section<foundry_image_edge>(FOUNDRY_SECTION_EDGES); }
    auto node_attributes() const { return section<foundry_image_node_attribute>(FOUNDRY_SECTION_NODE_ATTRIBUTES); }
    auto graphs() const { return section<foundry_image_graph>(FOUNDRY_SECTION_GRAPHS); }
    auto records() const { return section<foundry_image_record>(FOUNDRY_SECTION_RECORDS); }
    auto parameter_bytes() const { return section<uint8_t>(FOUNDRY_SECTION_PARAMETER_BYTES); }
    const uint8_t *copy(uint32_t index) const {
        return section<uint8_t>(FOUNDRY_SECTION_COPIES).data() + size_t{index} * 200;
    }
    auto references() const { return section<uint32_t>(FOUNDRY_SECTION_REFERENCES); }
    auto events() const { return section<uint32_t>(FOUNDRY_SECTION_EVENTS); }
    auto moves() const { return section<foundry_image_move>(FOUNDRY_SECTION_MOVES); }

    // NULL for an ordinal that the image does not know.
    const foundry_image_device *device(uint32_t ordinal) const {
        for (const auto &device : devices())
            if (device.ordinal == ordinal) return &device;
        return nullptr;
    }
};

// Empty if the image may be used, else what is wrong with it. Reads `size` bytes and no more, whatever they hold. Blobs
// are not looked into: each is for check_blob, before its first use.
std::string check_image(const uint8_t *bytes, size_t size);

// Whether the bytes of a blob are what the image was built with.
bool check_blob(const Image &image, uint32_t blob);

using ImagePointer = std::unique_ptr<Image, void (*)(Image *)>;

// Maps a file and checks it. NULL with a reason if it cannot be used. The mapping is released with the object.
ImagePointer open_image(const char *path, std::string &reason);

// Opens the image of this process, and waits for one that is still being made, for as long as this process has patience
// and whoever makes it lives. NULL without a reason: this process ends.
ImagePointer arriving_image(const std::string &path, std::string &reason);

} // namespace foundry::restore
