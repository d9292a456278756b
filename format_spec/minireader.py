"""A small, independent reader of Foundry archives, written from archive.md alone. Needs only zstandard.

    python minireader.py ARCHIVE        prints what is in it as JSON

`read(bytes)` returns the same as a dict, or raises Refused with a code of registry.md. It is for checking, not for
speed. Blobs of a thin archive that lie in library files are listed, and not looked for.
"""

import hashlib
import itertools
import json
import re
import struct
import sys
from pathlib import Path

import zstandard

MAGIC, END_MAGIC, MAJOR = b"\x93FDRY\r\n\x1a", b"FDRYEND\n", 1
HEADER, ENTRY, FOOTER = struct.Struct("<8sHHIQQ"), struct.Struct("<IIIIQQQ32s"), struct.Struct("<QII32s32sHHI8s")
SUMMARY, CAPTURE, PROCESS, ALLOCATIONS, GROUPS, BODIES, PARAMETERS, BLOBS, TIMELINE, MOVES, PREFETCH = range(1, 12)
DEPENDENCIES = 12
LIMITS = {**dict.fromkeys((SUMMARY, CAPTURE, PROCESS, TIMELINE, PREFETCH), 1 << 26), BLOBS: 1 << 24}
SECTION_LIMIT, WINDOW_LIMIT, CONTAINER_LIMIT = 1 << 30, 1 << 27, 1 << 30
WHOLE = NONE = 0xFFFFFFFF
KERNEL, MEMCPY, MEMSET, GRAPH, WAIT, RECORD = 0, 1, 2, 4, 6, 7
FOLDER = r"~?(/(?!\.{1,2}(/|\Z))[^/\0]+)*"
LIBRARY = r"(?!\.{1,2}\Z)[^/\0]{1,255}"
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
ALLOCATION = "u64 address size taken ordinal u32 device born died u16 born_thread died_thread u8 arena origin"
NODE = "u32 type kernel attributes parameter_size context child reason"
EDGE = "u32 start end u64 data"
LAUNCH = "u32 grid_x grid_y grid_z block_x block_y block_z shared_bytes"
MEMSET_ROW = "u64 destination pitch width height u32 value element_size"


class Refused(Exception):
    """The bytes are not an archive that may be used; `code` says why."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code


def need(condition, code, text):
    """Refuse unless the condition holds."""
    if not condition:
        raise Refused(code, text)


def content(condition, text):
    """Refuse what a section says unless the condition holds."""
    need(condition, "archive-content", text)


def read_container(data):
    """Check header, footer and table; return version, capture id and the entries."""
    need(data, "archive-empty", "no bytes")
    need(data[:8] == MAGIC[: len(data)], "archive-not-one", "no magic")
    if len(data) >= 12:
        need(int.from_bytes(data[8:10], "little") <= MAJOR, "archive-too-new", "newer major version")
    need(len(data) >= HEADER.size + FOOTER.size, "archive-truncated", "too short")
    _, major, minor, *zeros = HEADER.unpack_from(data)
    need(major >= 1 and not any(zeros), "archive-header", "header fields")
    footer_at = len(data) - FOOTER.size
    table_at, count, zero, check, identity, again, minor_again, zero_too, magic = FOOTER.unpack_from(data, footer_at)
    need(magic == END_MAGIC, "archive-truncated", "no end magic")
    need(not zero and not zero_too, "archive-footer", "footer fields")
    need((again, minor_again) == (major, minor), "archive-header", "versions differ")
    need(count <= 65536, "archive-limit", "sections")
    need(table_at >= HEADER.size and table_at + count * ENTRY.size == footer_at, "archive-footer", "place of the table")
    table = data[table_at:footer_at]
    need(hashlib.sha256(data[: HEADER.size] + table).digest() == check, "archive-table", "checksum of the table")
    entries = list(ENTRY.iter_unpack(table))
    at, name = HEADER.size, hashlib.sha256(b"foundry capture 1\n")
    need(all(not entry[3] and entry[1] in (0, 1) for entry in entries), "archive-table", "flags")
    for kind, flags, process, _, offset, stored, raw, digest in entries:
        need(offset == at and 0 < stored <= table_at - at, "archive-layout", "overlap, hole or end")
        need(raw <= LIMITS.get(kind, SECTION_LIMIT), "archive-limit", "raw size")
        need(not flags or SUMMARY <= kind <= DEPENDENCIES, "archive-section-unknown", f"kind {kind}")
        at += stored
        if flags:
            name.update(struct.pack("<IIQ", kind, process, raw) + digest)
    need(at == table_at, "archive-layout", "hole before the table")
    need(name.digest() == identity, "archive-footer", "capture id")
    return (major, minor), identity, entries


def unpack(data, entry):
    """Unpack one section, never beyond its declared size, and check its digest."""
    _, _, _, _, offset, stored, raw, digest = entry
    frame = data[offset : offset + stored]
    try:
        parameters = zstandard.get_frame_parameters(frame)
        need(parameters.content_size == raw, "archive-section-size", "frame and table differ")
        need(parameters.window_size <= max(WINDOW_LIMIT, raw), "archive-limit", "window")
        if raw:
            found = zstandard.ZstdDecompressor().decompress(frame, max_output_size=raw, allow_extra_data=False)
        else:  # of which that function looks at the header alone
            whole, found = zstandard.ZstdDecompressor().decompressobj(), b""
            for at in range(0, stored, 4):
                need(not whole.decompress(frame[at : at + 4]), "archive-section-damaged", "not empty")
            need(whole.eof and not whole.unused_data, "archive-section-damaged", "zstd")
    except (zstandard.ZstdError, MemoryError):
        raise Refused("archive-section-damaged", "zstd") from None
    need(len(found) == raw and hashlib.sha256(found).digest() == digest, "archive-section-damaged", "digest")
    return found


def read_text(raw):
    """Read JSON: an object, keys once, integers only."""

    def pairs(items):
        content(len(dict(items)) == len(items), "repeated key")
        return dict(items)

    def refuse(text):
        raise Refused("archive-content", f"{text} is not an integer")

    try:
        found = json.loads(raw.decode("utf-8"), object_pairs_hook=pairs, parse_float=refuse, parse_constant=refuse)
    except (ValueError, RecursionError, MemoryError):
        raise Refused("archive-content", "no JSON") from None
    content(isinstance(found, dict), "no object")
    return found


class Columns:
    """Reads columns of little-endian integers one after the other."""

    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def column(self, size, count):
        """Read that many integers of that many bytes."""
        start, self.at = self.at, self.at + size * count
        content(self.at <= len(self.raw), "a column passes the end")
        return [int.from_bytes(self.raw[at : at + size], "little") for at in range(start, self.at, size)]

    def table(self, layout, count):
        """Read a table as a list of rows; a layout is sizes, each before the fields that have it."""
        columns, size = {}, 0
        for word in layout.split():
            if word in SIZES:
                size = SIZES[word]
            else:
                columns[word] = self.column(size, count)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def finish(self):
        """Refuse what is left."""
        content(self.at == len(self.raw), "bytes are left")


def read_groups(raw):
    """Return the groups."""
    columns = Columns(raw)
    (count,) = columns.column(4, 1)
    node_counts, edge_counts = columns.column(4, count), columns.column(4, count)
    nodes, edges = columns.table(NODE, sum(node_counts)), columns.table(EDGE, sum(edge_counts))
    columns.finish()
    groups = []
    for index, (node_count, edge_count) in enumerate(zip(node_counts, edge_counts, strict=True)):
        own, edges_of = nodes[:node_count], edges[:edge_count]
        nodes, edges, start = nodes[node_count:], edges[edge_count:], 0
        for edge in edges_of:
            start = edge["start"] = (start + edge["start"]) % 2**32
            edge["end"] = (start + edge["end"]) % 2**32
            content(max(edge["start"], edge["end"]) < node_count, "an edge leads nowhere")
        content(all(n["child"] < index for n in own if n["type"] == GRAPH and n["reason"] == NONE), "child group")
        groups.append({"nodes": own, "edges": edges_of})
    return groups


def read_bodies(raw, groups, parameters):
    """Return the bodies, each node with the rows that it owns."""
    columns = Columns(raw)
    counts = columns.column(4, 6)
    bodies, children, events = (columns.column(4, count) for count in counts[:3])
    launches, memsets = columns.table(LAUNCH, counts[3]), columns.table(MEMSET_ROW, counts[4])
    words = [columns.column(8, counts[5]) for _ in range(25)]
    columns.finish()
    content(all(group < len(groups) for group in bodies), "a body names no group")
    copies = [{"copy": b"".join(w[row].to_bytes(8, "little") for w in words).hex()} for row in range(counts[5])]
    rows = {KERNEL: iter(launches), MEMSET: iter(memsets), MEMCPY: iter(copies)}
    rows[GRAPH], rows[RECORD] = iter([{"body": child} for child in children]), iter([{"event": e} for e in events])
    rows[WAIT] = rows[RECORD]
    content(len(bodies) <= 2**20 and sum(len(groups[group]["nodes"]) for group in bodies) <= 2**24, "too many nodes")
    found, owners = [], []
    for group in bodies:
        nodes = list(groups[group]["nodes"])
        for index, node in enumerate(nodes):
            if node["type"] in rows and node["reason"] == NONE:
                row = next(rows[node["type"]], None)
                content(row is not None, "a node has no row")
                nodes[index] = {**node, **row}
                owners.append(nodes[index])
        found.append({"group": group, "nodes": nodes})
    content(all(next(table, None) is None for table in rows.values()), "a row has no node")
    read_parameters(parameters, [node for node in owners if node["type"] == KERNEL])
    return found


def read_parameters(raw, nodes):
    """Give each kernel node its parameter block."""
    classes, at = {}, 0
    for node in nodes:
        classes.setdefault((node["kernel"], node["parameter_size"]), []).append(node)
    content(sum(-(-n["parameter_size"] // 8) * 8 for n in nodes) == len(raw), "size of the parameters")
    for (_, size), members in sorted(classes.items(), key=lambda item: item[0]):
        stride, end = 8 * len(members), at + -(-size // 8) * 8 * len(members)
        for first, node in zip(range(at, at + stride, 8), members, strict=True):
            node["parameters"] = b"".join(raw[word : word + 8] for word in range(first, end, stride))[:size].hex()
        at = end


def wide(value, most=2**64 - 1):
    """Read an integer of 64 bits as text writes it."""
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{14,16}", value):
        return int(value, 16)
    content(type(value) is int and 0 <= value < min(2**53, most + 1), f"{value!r} is no integer in its range")
    return value


def text(value, pattern):
    """Check a string."""
    content(type(value) is str and re.fullmatch(pattern, value), f"{value!r} has not the form {pattern}")
    return value


def stored_size(blob):
    """Check an entry of the list of blobs and return how many of its bytes stand in the archive."""
    text(blob["sha256"], "[0-9a-f]{64}")
    if "library" not in blob:
        return wide(blob["size"])
    place, size = blob["library"], wide(blob["size"], CONTAINER_LIMIT)
    text(place["name"], LIBRARY), text(place["build_id"], "([0-9a-f]{2}){1,64}")
    length, architecture = wide(place["size"], CONTAINER_LIMIT), wide(place["architecture"], 9999)
    content(size and length and (architecture or size == length), "size of a blob outside")
    content(wide(place["offset"]) + length <= 2**53, "offset of a blob outside")
    return 0


def check_files(files, blobs):
    """Check the files of caches: none may leave its folder."""
    for file in files:
        text(file["cache"], r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,128}")
        text(file["path"], r"(?!\.{1,2}(/|\Z))[^/\\\0]+(/(?!\.{1,2}(/|\Z))[^/\\\0]+)*")
        content(wide(file["mode"], 0o777) >= 0 and wide(file["blob"], NONE) < blobs, "a file's mode or blob")
    content(len({(file["cache"], file["path"]) for file in files}) == len(files), "a file is there twice")


def read_prefetch(raw):
    """Return the files that the start reads: path, size and ranges of each."""
    section = read_text(raw)
    folders, found = [text(folder, FOLDER) for folder in section["folders"]], []
    for file in section["files"]:
        text(file["name"], LIBRARY)
        path, size, numbers = folders[wide(file["folder"], NONE)] + "/" + file["name"], file["size"], file["ranges"]
        content(all(type(value) is int and 0 <= value < 2**53 for value in [size, *numbers]), "a size or range")
        content(len(numbers) % 2 == 0 and len(path) <= 4096, "a range or a path")
        end = 0
        for offset, length in zip(numbers[::2], numbers[1::2], strict=True):
            content(end <= offset and length, "ranges out of order")
            end = offset + length
        content(end <= size, "a range past the end")
        found.append({"path": path, "size": size, "ranges": numbers})
    content(len({file["path"] for file in found}) == len(found) <= 2**16, "a file is there twice, or too many")
    content(sum(len(file["ranges"]) for file in found) <= 2**21, "too many ranges")
    return found


def read_process(raw):
    """Return a process from its five sections."""
    process, table, groups = read_text(raw[0]), Columns(raw[1]), read_groups(raw[2])
    process["allocations"] = table.table(ALLOCATION, table.column(4, 1)[0])
    table.finish()
    process["groups"], process["bodies"] = groups, read_bodies(raw[3], groups, raw[4])
    text(process["role"], r"(?!\.+$)[A-Za-z0-9._-]{1,128}")
    forms = {"name": LIBRARY, "build_id": "([0-9a-f]{2}){0,64}", "package": "(?s).*", "version": "(?s).*"}
    libraries = [tuple(text(library[key], forms[key]) for key in forms) for library in process["libraries"]]
    content(libraries == sorted(set(libraries)), "libraries out of order")
    return process


def read_moves(raw, process):
    """Return where the addresses of proven graphs stand, each with its value."""
    columns = Columns(raw)
    (graphs, memsets, parameters, copies, texts), (noise,) = columns.column(4, 5), columns.column(8, 1)

    def sums(count):
        steps, values = columns.column(4, count), [0]
        for step in steps:
            values.append((values[-1] + step) % 2**32)
        return values[1:]

    found = {"graphs": sums(graphs), "memsets": sums(memsets), "noise": noise}
    for name, count in (("parameters", parameters), ("copies", copies), ("texts", texts)):
        found[name] = [list(place) for place in zip(sums(count), columns.column(4, count), strict=True)]
    columns.finish()
    owners = [node for body in process["bodies"] for node in body["nodes"]]
    blocks = [bytes.fromhex(node["parameters"]) for node in owners if "parameters" in node]
    rows = [bytes.fromhex(node["copy"]) for node in owners if "copy" in node]
    metadata = [graph["metadata"].encode("utf-8", "surrogatepass") for graph in process["graphs"]]
    targets = [node["destination"] for node in owners if "destination" in node]
    words = [targets[row] for row in found["memsets"]]
    for blobs, places in ((blocks, found["parameters"]), (rows, found["copies"])):
        for row, offset in places:
            content(offset + 8 <= len(blobs[row]), "a word past the end")
            words.append(int.from_bytes(blobs[row][offset : offset + 8], "little"))
        apart = all(
            one[0] < two[0] or (one[0] == two[0] and one[1] + 8 <= two[1]) for one, two in itertools.pairwise(places)
        )
        content(apart, "words out of order")
    for row, offset in found["texts"]:
        number = re.compile(rb"(?<![0-9])[0-9]{1,20}(?![0-9])").match(metadata[row], offset)
        content(number, "no number")
        words.append(int(number[0]))
    for name in ("graphs", "memsets", "texts"):
        content(all(one < two for one, two in itertools.pairwise(found[name])), f"{name} out of order")
    content(all(not process["graphs"][at]["reason_code"] for at in found["graphs"]), "a graph that cannot be restored")
    ranges = [(wide(device["base"]), 3 * wide(device["arena_size"])) for device in process["devices"]]
    content(all(any(0 <= word - at < size for at, size in ranges) for word in words), "no address")
    return found


def read_dependencies(raw, groups):
    """Return the nodes with their dependencies in an order of their own, as the nodes that these are."""
    columns = Columns(raw)
    count, places = columns.column(4, 2)
    rows, places = list(zip(columns.column(4, count), columns.column(4, count), strict=True)), columns.column(4, places)
    columns.finish()
    content(rows == sorted(set(rows)), "dependencies out of order")
    found, at = [], 0
    for group, node in rows:
        starts = [edge["start"] for edge in groups[group]["edges"] if edge["end"] == node]
        own, at = places[at : at + len(starts)], at + len(starts)
        plain = list(range(len(starts)))
        content(own != plain and sorted(own) == plain, "dependencies are in no other order")
        found.append({"group": group, "node": node, "starts": [starts[place] for place in own]})
    content(at == len(places), "dependencies that no node has")
    return found


def read(data):
    """Read an archive."""
    version, identity, entries = read_container(data)

    def only(kind, process=WHOLE, optional=False):
        found = [entry for entry in entries if (entry[0], entry[2]) == (kind, process)]
        need(len(found) <= 1, "archive-table", "a section is there twice")
        need(found or optional, "archive-section-missing", f"kind {kind}")
        return unpack(data, found[0]) if found else None

    capture = read_text(only(CAPTURE))
    try:
        numbers = range(wide(capture["processes"], 4096))
        processes = [read_process([only(kind, number) for kind in range(PROCESS, BLOBS)]) for number in numbers]
        for number, process in enumerate(processes):
            raw = only(MOVES, number, optional=True)
            process.update({} if raw is None else {"relocations": read_moves(raw, process)})
            raw = only(DEPENDENCIES, number, optional=True)
            process.update({} if raw is None else {"dependencies": read_dependencies(raw, process["groups"])})
        raw = only(TIMELINE, optional=True)
        times = [{"spent": {}} for _ in processes] if raw is None else read_text(raw)["processes"]
        for process, its in zip(processes, times, strict=True):
            process["spent"] = {name: value for name, value in its["spent"].items() if wide(value) is not None}
        content(
            all(e[2] < len(processes) for e in entries if e[0] in (*range(PROCESS, BLOBS), MOVES, DEPENDENCIES)),
            "process of a section",
        )
        parts = [(entry[2], unpack(data, entry)) for entry in entries if entry[0] == BLOBS]
        content(all(owner == WHOLE for owner, _ in parts), "blobs of a process")
        content(all(len(part) == LIMITS[BLOBS] for _, part in parts[:-1]) and all(part for _, part in parts), "cuts")
        joined, at = b"".join(part for _, part in parts), 0
        for blob in capture["blobs"]:
            start, at = at, at + stored_size(blob)
            same = hashlib.sha256(joined[start:at]).hexdigest() == blob["sha256"]
            content(same or "library" in blob, "digest of a blob")
        content(at == len(joined), "size of the blobs")
        check_files(capture["files"], len(capture["blobs"]))
        raw = only(PREFETCH, optional=True)
        prefetch = {} if raw is None else {"prefetch": read_prefetch(raw)}
        content(all(type(value) is str for value in capture["packages"].values()), "packages")
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise Refused("archive-content", f"a field is missing or odd: {error!r}") from None
    return {
        "version": f"{version[0]}.{version[1]}",
        "capture_id": identity.hex(),
        "sections": [{"kind": e[0], "process": e[2], "raw": e[6], "critical": bool(e[1])} for e in entries],
        "capture": capture,
        "processes": processes,
        **prefetch,
    }


if __name__ == "__main__":
    json.dump(read(Path(sys.argv[1]).read_bytes()), sys.stdout, indent=1, sort_keys=True)
