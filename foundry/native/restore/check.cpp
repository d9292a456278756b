// The one check of a restore image. It never trusts a length, reads nothing outside the file, and ends in bounded time
// whatever the bytes are. What it accepts, the engine reads without looking again.
#include "../hook/crc32c.h"
#include "image.h"

#include "../abi/spool_format.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

namespace foundry::restore {
namespace {

struct SectionRule {
    const char *name;
    uint32_t entry_size;
    uint32_t alignment;
};

constexpr SectionRule section_rules[FOUNDRY_SECTION_COUNT] = {
    {"strings", 1, 16},
    {"devices", sizeof(foundry_image_device), 16},
    {"log", sizeof(foundry_image_log_entry), 16},
    {"allocations", sizeof(foundry_image_allocation), 16},
    {"mappings", sizeof(foundry_image_mapping), 16},
    {"blobs", sizeof(foundry_image_blob), 16},
    {"blob bytes", 1, 4096},
    {"images", sizeof(foundry_image_kernel_image), 16},
    {"image options", sizeof(foundry_image_option), 16},
    {"kernels", sizeof(foundry_image_kernel), 16},
    {"parameters", sizeof(foundry_image_parameter), 16},
    {"attributes", sizeof(foundry_image_attribute), 16},
    {"groups", sizeof(foundry_image_group), 16},
    {"nodes", sizeof(foundry_image_node), 16},
    {"edges", sizeof(foundry_image_edge), 16},
    {"node attributes", sizeof(foundry_image_node_attribute), 16},
    {"graphs", sizeof(foundry_image_graph), 16},
    {"records", sizeof(foundry_image_record), 16},
    {"parameter bytes", 1, 16},
    {"copies", 200, 16},
    {"references", 4, 16},
    {"events", 4, 16},
    {"moves", sizeof(foundry_image_move), 16},
};

constexpr uint64_t page = uint64_t{2} << 20;
constexpr uint64_t address_limit = uint64_t{1} << 57;
constexpr uint32_t deepest_child = 16;
constexpr uint64_t most_steps = uint64_t{256} << 20;
constexpr size_t most_devices = 64;
constexpr uint32_t most_parameter_bytes = 32764;

enum NodeType : uint32_t {
    kernel_node = 0,
    memcpy_node = 1,
    memset_node = 2,
    child_node = 4,
    empty_node = 5,
    wait_node = 6,
    record_node = 7
};

class Check {
  public:
    Check(const uint8_t *bytes, size_t size) : image_{bytes, size, {}} {}

    std::string run() {
        bool good = header() && sections() && devices() && memory() && blobs() && images() && kernels() && groups() &&
                    graphs() && moves();
        return good ? std::string() : reason_;
    }

  private:
    bool no(std::string reason) {
        reason_ = std::move(reason);
        return false;
    }
    bool no(foundry_section section, size_t entry, std::string_view what) {
        return no(std::string(section_rules[section].name) + " " + std::to_string(entry) + ": " + std::string(what));
    }
    static std::string found(std::string_view what, uint64_t value, uint64_t limit) {
        return std::string(what) + " " + std::to_string(value) + " of " + std::to_string(limit);
    }
    static bool inside(uint64_t first, uint64_t count, uint64_t limit) {
        return first <= limit && count <= limit - first;
    }
    // Entries may be shared, so that work is not bounded by the size of the file: this bounds it.
    bool spend(uint64_t steps) {
        spent_ += steps;
        return spent_ <= most_steps || no("refers to the same entries too often");
    }
    bool string_ok(uint32_t offset) const { return offset < image_.header().sections[FOUNDRY_SECTION_STRINGS].count; }
    uint64_t count(foundry_section section) const { return image_.header().sections[section].count; }

    bool header() {
        if (image_.size < sizeof(foundry_image_header)) return no("shorter than its header");
        if (reinterpret_cast<uintptr_t>(image_.bytes) % 16) return no("not aligned in memory");
        foundry_image_header header = image_.header();
        if (memcmp(header.magic, FOUNDRY_IMAGE_MAGIC, sizeof header.magic)) return no("not a restore image");
        if (header.abi != FOUNDRY_ABI)
            return no("made for abi " + std::to_string(header.abi) + ", this hook has " + std::to_string(FOUNDRY_ABI));
        if (header.section_count != FOUNDRY_SECTION_COUNT)
            return no(found("section count", header.section_count, FOUNDRY_SECTION_COUNT));
        if (header.file_size != image_.size) return no(found("file size", header.file_size, image_.size));
        uint32_t expected = header.crc32c;
        header.crc32c = 0;
        if (crc32c(0, &header, sizeof header) != expected) return no("header: checksum differs");
        if (header.simulated > 1) return no("header: the simulated flag is neither 0 nor 1");
        return true;
    }

    bool sections() {
        for (uint32_t index = 0; index < FOUNDRY_SECTION_COUNT; index++) {
            const foundry_image_section &section = image_.header().sections[index];
            const SectionRule &rule = section_rules[index];
            auto bad = [&](std::string_view what) {
                return no(std::string("section ") + rule.name + ": " + std::string(what));
            };
            if (section.entry_size != rule.entry_size)
                return bad(found("entry size", section.entry_size, rule.entry_size));
            if (section.offset % rule.alignment) return bad("not aligned");
            if (section.offset < sizeof(foundry_image_header)) return bad("overlaps the header");
            if (section.count > FOUNDRY_NONE && rule.entry_size != 1) return bad("too many entries");
            if (section.count > image_.size / rule.entry_size ||
                !inside(section.offset, section.count * rule.entry_size, image_.size))
                return bad("reaches past the end of the file");
            if (index == FOUNDRY_SECTION_BLOB_BYTES) {
                if (section.crc32c) return bad("has a checksum, which is its blobs' to have");
                continue;
            }
            if (crc32c(0, image_.bytes + section.offset, section.count * rule.entry_size) != section.crc32c)
                return bad("checksum differs");
        }
        auto strings = image_.section<char>(FOUNDRY_SECTION_STRINGS);
        if (strings.empty() || strings.front() || strings.back()) return no("section strings: not terminated");
        if (strings.size() > FOUNDRY_NONE) return no("section strings: too long");
        if (!string_ok(image_.header().role)) return no("header: role outside the strings");
        return true;
    }

    bool devices() {
        auto all = image_.devices();
        if (all.size() > most_devices) return no(found("devices", all.size(), most_devices));
        for (size_t index = 0; index < all.size(); index++) {
            const auto &device = all[index];
            auto bad = [&](std::string_view what) { return no(FOUNDRY_SECTION_DEVICES, index, what); };
            if (!string_ok(device.name)) return bad("name outside the strings");
            for (size_t other = 0; other < index; other++)
                if (all[other].ordinal == device.ordinal) return bad("its ordinal was there before");
            if (device.base % page || device.arena_size % page) return bad("range not on 2 MiB");
            if (device.base >= address_limit || device.arena_size >= address_limit / FOUNDRY_ARENA_COUNT)
                return bad("range too far up");
            if (!device.base != !device.arena_size) return bad("range without base or size");
        }
        return true;
    }

    static bool in_range(const foundry_image_device &device, uint64_t address, uint64_t size) {
        return address >= device.base && inside(address - device.base, size, device.arena_size * FOUNDRY_ARENA_COUNT);
    }

    bool memory() {
        auto log = image_.log();
        for (size_t index = 0; index < log.size(); index++) {
            if (!image_.device(log[index].device)) return no(FOUNDRY_SECTION_LOG, index, "unknown device");
            if (log[index].freed > 1) return no(FOUNDRY_SECTION_LOG, index, "neither allocation nor free");
            if (log[index].where >= count(FOUNDRY_SECTION_STRINGS))
                return no(FOUNDRY_SECTION_LOG, index,
                          found("string", log[index].where, count(FOUNDRY_SECTION_STRINGS)));
        }
        auto mappings = image_.mappings();
        uint64_t end = 0;
        for (size_t index = 0; index < mappings.size(); index++) {
            const auto &mapping = mappings[index];
            auto bad = [&](std::string_view what) { return no(FOUNDRY_SECTION_MAPPINGS, index, what); };
            const foundry_image_device *device = image_.device(mapping.device);
            if (!device) return bad("unknown device");
            if (!mapping.size || mapping.address % page || mapping.size % page) return bad("not on 2 MiB");
            if (!in_range(*device, mapping.address, mapping.size)) return bad("outside the range of its device");
            if (mapping.address < end) return bad("not above the one before it");
            end = mapping.address + mapping.size;
            if (mapping.contents == FOUNDRY_NONE) continue;
            if (mapping.contents >= count(FOUNDRY_SECTION_BLOBS))
                return bad(found("blob", mapping.contents, count(FOUNDRY_SECTION_BLOBS)));
            if (!inside(mapping.contents_offset, image_.blobs()[mapping.contents].length, mapping.size))
                return bad("contents longer than the mapping");
        }
        auto allocations = image_.allocations();
        for (size_t index = 0; index < allocations.size(); index++) {
            const auto &allocation = allocations[index];
            auto bad = [&](std::string_view what) { return no(FOUNDRY_SECTION_ALLOCATIONS, index, what); };
            const foundry_image_device *device = image_.device(allocation.device);
            if (!device) return bad("unknown device");
            if (allocation.arena >= FOUNDRY_ARENA_COUNT) return bad("unknown arena");
            if (!allocation.size || !in_range(*device, allocation.address, allocation.size))
                return bad("outside the range of its device");
            if ((allocation.address - device->base) / device->arena_size != allocation.arena)
                return bad("not in its arena");
            if (allocation.restored > 1) return bad("neither the program's nor restored");
            if (allocation.log_entries > log.size()) return bad("after more entries than the log has");
            if (allocation.restored && !mapped(allocation.address, allocation.size))
                return reason_.empty() && bad("restored, but not in a mapping");
        }
        return true;
    }

    // Neighbouring mappings count as one.
    bool mapped(uint64_t address, uint64_t size) {
        auto mappings = image_.mappings();
        auto next = std::upper_bound(mappings.begin(), mappings.end(), address,
                                     [](uint64_t value, const auto &mapping) { return value < mapping.address; });
        if (next == mappings.begin()) return false;
        uint64_t end = address + size;
        for (auto mapping = next - 1; mapping != mappings.end() && mapping->address <= address; mapping++) {
            if (!spend(1)) return false;
            address = mapping->address + mapping->size;
            if (address >= end) return true;
        }
        return false;
    }

    bool blobs() {
        auto all = image_.blobs();
        for (size_t index = 0; index < all.size(); index++)
            if (!inside(all[index].offset, all[index].length, count(FOUNDRY_SECTION_BLOB_BYTES)))
                return no(FOUNDRY_SECTION_BLOBS, index, "outside the blob bytes");
        return true;
    }

    bool images() {
        auto all = image_.images();
        for (size_t index = 0; index < all.size(); index++) {
            const auto &image = all[index];
            auto bad = [&](std::string_view what) { return no(FOUNDRY_SECTION_IMAGES, index, what); };
            if (image.blob >= count(FOUNDRY_SECTION_BLOBS))
                return bad(found("blob", image.blob, count(FOUNDRY_SECTION_BLOBS)));
            if (image_.blobs()[image.blob].length < 16) return bad("too short for a kernel image");
            if (image.api != FOUNDRY_API_MODULE && image.api != FOUNDRY_API_LIBRARY) return bad("unknown api");
            if (image.api == FOUNDRY_API_MODULE && !image_.device(image.device)) return bad("unknown device");
            if (!inside(image.first_option, image.option_count, count(FOUNDRY_SECTION_IMAGE_OPTIONS)))
                return bad("options out of range");
            if (image.option_count > 64) return bad("more than 64 options");
            if (!string_ok(image.provenance)) return bad("provenance outside the strings");
            if (image.whole == FOUNDRY_NONE) continue;
            if (image.whole >= all.size()) return bad(found("whole image", image.whole, all.size()));
            if (!same_load(image, all[image.whole])) return bad("not the same load as the whole image");
        }
        return true;
    }

    static bool same_load(const foundry_image_kernel_image &image, const foundry_image_kernel_image &whole) {
        return whole.whole == FOUNDRY_NONE && !memcmp(image.key, whole.key, sizeof image.key) &&
               image.api == whole.api && image.instance == whole.instance && image.device == whole.device &&
               !image.option_count && !whole.option_count;
    }

    bool kernels() {
        auto all = image_.kernels();
        for (size_t index = 0; index < all.size(); index++) {
            const auto &kernel = all[index];
            auto bad = [&](std::string_view what) { return no(FOUNDRY_SECTION_KERNELS, index, what); };
            if (kernel.image >= count(FOUNDRY_SECTION_IMAGES))
                return bad(found("image", kernel.image, count(FOUNDRY_SECTION_IMAGES)));
            if (!string_ok(kernel.name) || !*image_.string(kernel.name)) return bad("no name");
            if (!image_.device(kernel.device)) return bad("unknown device");
            if (!inside(kernel.first_parameter, kernel.parameter_count, count(FOUNDRY_SECTION_PARAMETERS)))
                return bad("parameters out of range");
            if (!inside(kernel.first_attribute, kernel.attribute_count, count(FOUNDRY_SECTION_ATTRIBUTES)))
                return bad("attributes out of range");
            if (kernel.parameter_bytes > most_parameter_bytes)
                return bad(found("parameter bytes", kernel.parameter_bytes, most_parameter_bytes));
            if (!spend(kernel.parameter_count + uint64_t{kernel.attribute_count})) return false;
            uint64_t end = 0;
            for (const auto &parameter : image_.parameters().subspan(kernel.first_parameter, kernel.parameter_count)) {
                if (parameter.offset < end || !parameter.size) return bad("parameters overlap or are empty");
                end = uint64_t{parameter.offset} + parameter.size;
            }
            if (end != kernel.parameter_bytes) return bad(found("last parameter ends at", end, kernel.parameter_bytes));
        }
        return true;
    }

    bool groups() {
        auto all = image_.groups();
        for (size_t index = 0; index < all.size(); index++) {
            const auto &group = all[index];
            auto bad = [&](std::string_view what) { return no(FOUNDRY_SECTION_GROUPS, index, what); };
            if (!inside(group.first_node, group.node_count, count(FOUNDRY_SECTION_NODES)))
                return bad("nodes out of range");
            if (!inside(group.first_edge, group.edge_count, count(FOUNDRY_SECTION_EDGES)))
                return bad("edges out of range");
            if (!spend(group.node_count + uint64_t{group.edge_count})) return false;
            auto edges = image_.edges().subspan(group.first_edge, group.edge_count);
            for (const auto &edge : edges)
                if (edge.from >= group.node_count || edge.to >= group.node_count) return bad("an edge to no node");
            if (!in_order(edges)) return bad("edges not in order");
            if (!acyclic(group.node_count, edges)) return bad("edges run in a circle");
        }
        auto nodes = image_.nodes();
        for (size_t index = 0; index < nodes.size(); index++)
            if (!node(nodes[index]))
                return no(FOUNDRY_SECTION_NODES, index, "type, kernel, child group or attributes out of range");
        depths_.assign(all.size(), 0);
        for (uint32_t index = 0; index < all.size(); index++)
            if (!depth(index, deepest_child))
                return no(FOUNDRY_SECTION_GROUPS, index, "child graphs in a circle or too deep");
        return true;
    }

    bool node(const foundry_image_node &node) const {
        if (!inside(node.first_attribute, node.attribute_count, count(FOUNDRY_SECTION_NODE_ATTRIBUTES))) return false;
        switch (node.type) {
        case kernel_node:
            return node.kernel < count(FOUNDRY_SECTION_KERNELS);
        case child_node:
            return node.child_group < count(FOUNDRY_SECTION_GROUPS);
        case memcpy_node:
        case memset_node:
        case empty_node:
        case wait_node:
        case record_node:
            return true;
        default:
            return false;
        }
    }

    static bool edge_before(const foundry_image_edge &left, const foundry_image_edge &right) {
        if (int order = memcmp(left.data, right.data, sizeof left.data)) return order < 0;
        return left.from != right.from ? left.from < right.from : left.to < right.to;
    }

    // By themselves, or by the nodes that they lead to; each once.
    static bool in_order(std::span<const foundry_image_edge> edges) {
        auto ascend = [](std::span<const foundry_image_edge> all) {
            return std::adjacent_find(all.begin(), all.end(), std::not_fn(edge_before)) == all.end();
        };
        if (ascend(edges)) return true;
        std::vector<foundry_image_edge> sorted(edges.begin(), edges.end());
        std::sort(sorted.begin(), sorted.end(), edge_before);
        return std::is_sorted(edges.begin(), edges.end(),
                              [](const auto &left, const auto &right) { return left.to < right.to; }) &&
               ascend(sorted);
    }

    static bool acyclic(uint32_t node_count, std::span<const foundry_image_edge> edges) {
        if (std::all_of(edges.begin(), edges.end(), [](const auto &edge) { return edge.from < edge.to; })) return true;
        std::vector<uint32_t> waits(node_count), first(size_t{node_count} + 1), ready;
        std::vector<uint32_t> targets(edges.size());
        for (const auto &edge : edges) waits[edge.to]++, first[edge.from + 1]++;
        for (uint32_t at = 0; at < node_count; at++) first[at + 1] += first[at];
        std::vector<uint32_t> place(first.begin(), first.end() - 1);
        for (const auto &edge : edges) targets[place[edge.from]++] = edge.to;
        for (uint32_t at = 0; at < node_count; at++)
            if (!waits[at]) ready.push_back(at);
        for (size_t done = 0; done < ready.size(); done++)
            for (uint32_t at = first[ready[done]]; at < first[ready[done] + 1]; at++)
                if (!--waits[targets[at]]) ready.push_back(targets[at]);
        return ready.size() == node_count;
    }

    // Levels of child graphs below a group, remembered as level + 1; false when there are more than `left`.
    bool depth(uint32_t group, uint32_t left) {
        if (depths_[group]) return depths_[group] <= left + 1;
        if (!left) return false;
        uint32_t deepest = 0;
        const auto &entry = image_.groups()[group];
        for (const auto &node : image_.nodes().subspan(entry.first_node, entry.node_count)) {
            if (node.type != child_node) continue;
            if (!depth(node.child_group, left - 1)) return false;
            deepest = std::max(deepest, depths_[node.child_group]);
        }
        depths_[group] = deepest + 1;
        return true;
    }

    bool graphs() {
        auto all = image_.graphs();
        uses_.assign(count(FOUNDRY_SECTION_RECORDS), 0);
        for (uint32_t reference : image_.references())
            if (reference >= count(FOUNDRY_SECTION_ALLOCATIONS))
                return no(found("references: allocation", reference, count(FOUNDRY_SECTION_ALLOCATIONS)));
        for (size_t index = 0; index < all.size(); index++) {
            const auto &graph = all[index];
            auto bad = [&](std::string_view what) { return no(FOUNDRY_SECTION_GRAPHS, index, what); };
            if (!string_ok(graph.set) || !string_ok(graph.key) || !string_ok(graph.metadata) ||
                !string_ok(graph.reason))
                return bad("a string outside the strings");
            if (graph.restorable > 1) return bad("neither restorable nor not");
            if (graph.moves > graph.restorable) return bad("neither proven to move nor not");
            if (!inside(graph.first_reference, graph.reference_count, count(FOUNDRY_SECTION_REFERENCES)))
                return bad("references out of range");
            if (!graph.restorable) continue;
            if (!image_.device(graph.device)) return bad("unknown device");
            if (graph.group >= count(FOUNDRY_SECTION_GROUPS))
                return bad(found("group", graph.group, count(FOUNDRY_SECTION_GROUPS)));
            if (!records(graph.group, graph.first_record))
                return reason_.empty() && bad("a record out of range, or not as its node says");
        }
        return true;
    }

    bool records(uint32_t group_index, uint64_t first_record) {
        const auto &group = image_.groups()[group_index];
        if (!spend(group.node_count + uint64_t{1}) ||
            !inside(first_record, group.node_count, count(FOUNDRY_SECTION_RECORDS)))
            return false;
        for (uint32_t index = 0; index < group.node_count; index++) {
            const auto &node = image_.nodes()[group.first_node + index];
            const auto &record = image_.records()[first_record + index];
            uses_[first_record + index] |= node.type == memset_node ? memset_use : other_use;
            switch (node.type) {
            case kernel_node:
                if (record.kernel.parameter_size != image_.kernels()[node.kernel].parameter_bytes) return false;
                if (record.kernel.parameter_offset % 16) return false;
                if (!inside(record.kernel.parameter_offset, record.kernel.parameter_size,
                            count(FOUNDRY_SECTION_PARAMETER_BYTES)))
                    return false;
                break;
            case memcpy_node:
                if (record.memcpy.copy >= count(FOUNDRY_SECTION_COPIES)) return false;
                break;
            case wait_node:
            case record_node:
                if (record.event.event >= count(FOUNDRY_SECTION_EVENTS)) return false;
                break;
            case child_node:
                if (!records(node.child_group, record.child.first_record)) return false;
                break;
            default:
                break;
            }
        }
        return true;
    }

    // What is written to a record must not become an index in another reading of it.
    bool moves() {
        auto all = image_.moves();
        uint64_t text_end = 0; // of the number before, in the strings
        for (size_t index = 0; index < all.size(); index++) {
            const auto &move = all[index];
            auto bad = [&](std::string_view what) { return no(FOUNDRY_SECTION_MOVES, index, what); };
            if (move.section != FOUNDRY_SECTION_STRINGS && move.section != FOUNDRY_SECTION_RECORDS &&
                move.section != FOUNDRY_SECTION_PARAMETER_BYTES && move.section != FOUNDRY_SECTION_COPIES)
                return bad("in a section without addresses");
            const uint64_t size =
                count(static_cast<foundry_section>(move.section)) * section_rules[move.section].entry_size;
            if (!inside(move.offset, 8, size)) return bad("outside its section");
            if (index && (move.section < all[index - 1].section ||
                          (move.section == all[index - 1].section && move.offset < all[index - 1].offset + 8)))
                return bad("not above the one before it");
            if (move.section == FOUNDRY_SECTION_RECORDS &&
                (move.offset % sizeof(foundry_image_record) ||
                 uses_[move.offset / sizeof(foundry_image_record)] != memset_use))
                return bad("not the destination of a memset");
            const foundry_image_device *device = image_.device(move.device);
            if (!device || !device->base) return bad("unknown device, or one without a range");
            uint64_t word;
            if (move.section == FOUNDRY_SECTION_STRINGS) {
                const char *digits = image_.string(static_cast<uint32_t>(move.offset));
                if (*digits < '0' || *digits > '9' || move.offset < text_end) return bad("not where a number begins");
                char *end;
                word = strtoull(digits, &end, 10);
                text_end = move.offset + static_cast<uint64_t>(end - digits);
            } else {
                memcpy(&word, image_.bytes + image_.header().sections[move.section].offset + move.offset, sizeof word);
            }
            if (!in_range(*device, word, 1)) return bad("no address in the range of its device");
        }
        return true;
    }

    enum : uint8_t { memset_use = 1, other_use = 2 };

    Image image_;
    std::string reason_;
    std::vector<uint32_t> depths_;
    std::vector<uint8_t> uses_;
    uint64_t spent_ = 0;
};

} // namespace

std::string check_image(const uint8_t *bytes, size_t size) {
    return Check(bytes, size).run();
}

bool check_blob(const Image &image, uint32_t index) {
    const auto &blob = image.blobs()[index];
    return crc32c(0, image.blob_bytes().data() + blob.offset, blob.length) == blob.crc32c;
}

} // namespace foundry::restore
