// The check of a restore image, by itself.
//   restore_check_program check FILE...       prints one line for each: "ok", or the reason
//   restore_check_program flip FILE           flips each byte that the check covers: every one must be refused
//   restore_check_program fuzz FILE SEED N    N times: damages some bytes, mends the checksums, checks, and reads all
//   of what is accepted
#include "hook/crc32c.h"
#include "restore/image.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

using foundry::restore::Image;

namespace {

std::vector<char> read_file(const char *path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// A copy of exactly that size, so that a sanitizer sees each byte read past the end.
struct Exact {
    explicit Exact(size_t size) : size(size) {
        if (posix_memalign(reinterpret_cast<void **>(&bytes), 4096, size ? size : 1)) abort();
    }
    ~Exact() { free(bytes); }
    Exact(const Exact &) = delete;
    Exact &operator=(const Exact &) = delete;
    uint8_t *bytes = nullptr;
    size_t size;
};

std::string check(const std::vector<char> &file) {
    Exact copy(file.size());
    if (!file.empty()) memcpy(copy.bytes, file.data(), file.size());
    return foundry::restore::check_image(copy.bytes, copy.size);
}

void mend(std::vector<char> &file) {
    auto &header = *reinterpret_cast<foundry_image_header *>(file.data());
    for (uint32_t index = 0; index < FOUNDRY_SECTION_COUNT; index++) {
        auto &section = header.sections[index];
        if (section.offset > file.size() || !section.entry_size ||
            section.count > (file.size() - section.offset) / section.entry_size)
            continue;
        section.crc32c = index == FOUNDRY_SECTION_BLOB_BYTES
                             ? 0
                             : foundry::crc32c(0, file.data() + section.offset, section.count * section.entry_size);
    }
    header.crc32c = 0;
    header.crc32c = foundry::crc32c(0, &header, sizeof header);
}

uint64_t sum_of(const uint8_t *bytes, size_t size) {
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at++) sum += bytes[at];
    return sum;
}

uint64_t read_graph(const Image &image, uint32_t group_index, uint64_t first_record) {
    uint64_t sum = 0;
    const auto &group = image.groups()[group_index];
    for (uint32_t at = 0; at < group.node_count; at++) {
        const auto &node = image.nodes()[group.first_node + at];
        const auto &record = image.records()[first_record + at];
        for (uint32_t attribute = 0; attribute < node.attribute_count; attribute++)
            sum += image.node_attributes()[node.first_attribute + attribute].value[63];
        if (node.type == 0)
            sum +=
                sum_of(image.parameter_bytes().data() + record.kernel.parameter_offset, record.kernel.parameter_size);
        if (node.type == 1) sum += sum_of(image.copy(record.memcpy.copy), 200);
        if (node.type == 4) sum += read_graph(image, node.child_group, record.child.first_record);
        if (node.type == 6 || node.type == 7) sum += image.events()[record.event.event];
    }
    for (uint32_t at = 0; at < group.edge_count; at++) sum += image.edges()[group.first_edge + at].to;
    return sum;
}

uint64_t read_all(const Image &image) {
    uint64_t sum = strlen(image.string(image.header().role));
    for (const auto &device : image.devices()) sum += strlen(image.string(device.name));
    for (const auto &entry : image.log()) sum += image.device(entry.device)->base;
    for (const auto &entry : image.allocations()) sum += image.device(entry.device)->base;
    for (const auto &entry : image.mappings())
        if (entry.contents != FOUNDRY_NONE) sum += image.blobs()[entry.contents].length;
    for (const auto &blob : image.blobs()) sum += sum_of(image.blob_bytes().data() + blob.offset, blob.length);
    for (const auto &entry : image.images()) {
        sum += image.blobs()[entry.blob].length + strlen(image.string(entry.provenance));
        for (uint32_t at = 0; at < entry.option_count; at++)
            sum += image.image_options()[entry.first_option + at].value;
    }
    for (const auto &kernel : image.kernels()) {
        sum += strlen(image.string(kernel.name)) + image.images()[kernel.image].api;
        for (uint32_t at = 0; at < kernel.parameter_count; at++)
            sum += image.parameters()[kernel.first_parameter + at].size;
        for (uint32_t at = 0; at < kernel.attribute_count; at++)
            sum += image.attributes()[kernel.first_attribute + at].id;
    }
    for (const auto &graph : image.graphs()) {
        sum += strlen(image.string(graph.set)) + strlen(image.string(graph.key)) +
               strlen(image.string(graph.metadata)) + strlen(image.string(graph.reason));
        for (uint32_t at = 0; at < graph.reference_count; at++)
            sum += image.allocations()[image.references()[graph.first_reference + at]].address;
        if (graph.restorable) sum += read_graph(image, graph.group, graph.first_record);
    }
    return sum;
}

int flip(const std::vector<char> &file) {
    const auto header = *reinterpret_cast<const foundry_image_header *>(file.data());
    std::vector<char> covered(file.size());
    memset(covered.data(), 1, sizeof header);
    for (uint32_t index = 0; index < FOUNDRY_SECTION_COUNT; index++)
        if (const auto &section = header.sections[index]; index != FOUNDRY_SECTION_BLOB_BYTES)
            memset(covered.data() + section.offset, 1, section.count * section.entry_size);
    size_t tried = 0;
    for (size_t at = 0; at < file.size(); at++) {
        if (!covered[at]) continue;
        std::vector<char> damaged = file;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
        if (check(damaged).empty()) return printf("byte %zu: accepted\n", at), 1;
        tried++;
    }
    for (size_t size = 0; size < file.size(); size += 61)
        if (check({file.begin(), file.begin() + static_cast<long>(size)}).empty())
            return printf("cut at %zu: accepted\n", size), 1;
    printf("%zu refused\n", tried);
    return 0;
}

int fuzz(const std::vector<char> &file, unsigned seed, unsigned rounds) {
    static const uint64_t interesting[] = {0,
                                           1,
                                           2,
                                           7,
                                           255,
                                           4095,
                                           0x7fffffff,
                                           0xffffffff,
                                           0x80000000,
                                           0x7fffffffffffffff,
                                           0xffffffffffffffff,
                                           0xfffffffffffff000};
    std::mt19937_64 random(seed);
    const auto header = *reinterpret_cast<const foundry_image_header *>(file.data());
    unsigned accepted = 0;
    uint64_t sum = 0;
    for (unsigned round = 0; round < rounds; round++) {
        std::vector<char> damaged = file;
        for (unsigned count = 1 + random() % 3; count; count--) {
            const auto &section = header.sections[random() % FOUNDRY_SECTION_COUNT];
            size_t first = 0, size = sizeof header;
            if (random() % 8 && section.count) first = section.offset, size = section.count * section.entry_size;
            size_t width = size_t{1} << random() % 4, at = first + random() % size / width * width;
            if (at + width > file.size()) continue;
            uint64_t value = random() % 3 ? interesting[random() % std::size(interesting)] : random() % 64;
            memcpy(damaged.data() + at, &value, width);
        }
        mend(damaged);
        Exact copy(damaged.size());
        memcpy(copy.bytes, damaged.data(), damaged.size());
        if (!foundry::restore::check_image(copy.bytes, copy.size).empty()) continue;
        accepted++;
        sum += read_all(Image{copy.bytes, copy.size, {}});
    }
    printf("%u of %u accepted (%llu)\n", accepted, rounds, static_cast<unsigned long long>(sum));
    return 0;
}

} // namespace

int main(int count, char **words) {
    if (count < 3) return 2;
    std::string what = words[1];
    if (what == "check") {
        for (int at = 2; at < count; at++) {
            std::string reason;
            foundry::restore::open_image(words[at], reason);
            puts(reason.empty() ? "ok" : reason.c_str());
        }
        return 0;
    }
    std::vector<char> file = read_file(words[2]);
    if (!check(file).empty()) return printf("not valid to begin with: %s\n", check(file).c_str()), 1;
    if (what == "flip") return flip(file);
    if (what == "fuzz" && count == 5)
        return fuzz(file, static_cast<unsigned>(atoi(words[3])), static_cast<unsigned>(atoi(words[4])));
    return 2;
}
