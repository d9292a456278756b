"""A small, independent reader of Foundry archives, written from archive.md alone. Needs only zstandard.

    python minireader.py ARCHIVE        prints what is in it as JSON

`read(bytes)` returns the same as a dict, or raises Refused with a code of registry.md. It is for checking, not for
speed.
"""

import hashlib
import json
import re
import struct
import sys
from pathlib import Path

import zstandard

MAGIC, END_MAGIC, MAJOR = b"\x93FDRY\r\n\x1a", b"FDRYEND\n", 1
HEADER, ENTRY, FOOTER = struct.Struct("<8sHHIQQ"), struct.Struct("<IIIIQQQ32s"), struct.Struct("<QII32s32sHHI8s")
SUMMARY, CAPTURE, PROCESS, ALLOCATIONS, GROUPS, BODIES, PARAMETERS, BLOBS, TIMELINE = range(1, 10)
WHOLE = NONE = 0xFFFFFFFF
BLOB_CUT, TEXT_LIMIT, SECTION_LIMIT, WINDOW_LIMIT = 1 << 24, 1 << 26, 1 << 30, 1 << 27
KERNEL, MEMCPY, MEMSET, GRAPH, WAIT, RECORD = 0, 1, 2, 4, 6, 7


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
        text = kind in (SUMMARY, CAPTURE, PROCESS, TIMELINE)
        limit = TEXT_LIMIT if text else BLOB_CUT if kind == BLOBS else SECTION_LIMIT
        need(raw <= limit, "archive-limit", "raw size")
        need(not flags or SUMMARY <= kind <= TIMELINE, "archive-section-unknown", f"kind {kind}")
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
    except zstandard.ZstdError:
        raise Refused("archive-section-damaged", "no zstd frame") from None
    need(parameters.content_size == raw, "archive-section-size", "frame and table differ")
    need(parameters.window_size <= max(WINDOW_LIMIT, raw), "archive-limit", "window")
    try:
        found = zstandard.ZstdDecompressor().decompress(frame, max_output_size=raw, allow_extra_data=False)
    except zstandard.ZstdError:
        raise Refused("archive-section-damaged", "zstd") from None
    need(len(found) == raw and hashlib.sha256(found).digest() == digest, "archive-section-damaged", "digest")
    return found


def read_text(raw):
    """Read canonical JSON: an object, keys once, integers only."""

    def pairs(items):
        content(len(dict(items)) == len(items), "repeated key")
        return dict(items)

    def refuse(text):
        raise Refused("archive-content", f"{text} is not an integer")

    try:
        found = json.loads(raw.decode("utf-8"), object_pairs_hook=pairs, parse_float=refuse, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Refused("archive-content", "no JSON") from None
    content(isinstance(found, dict), "no object")
    return found


class Columns:
    """Reads columns of little-endian integers one after the other."""

    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def column(self, size, count):
        """Read that many integers of that many bytes."""
        content(size * count <= len(self.raw) - self.at, "a column passes the end")
        found = [
            int.from_bytes(self.raw[at : at + size], "little") for at in range(self.at, self.at + size * count, size)
        ]
        self.at += size * count
        return found

    def table(self, layout, count):
        """Read a table as a list of rows."""
        columns = [(name, self.column(size, count)) for name, size in layout]
        return [{name: values[row] for name, values in columns} for row in range(count)]

    def finish(self):
        """Refuse what is left."""
        content(self.at == len(self.raw), "bytes are left")


ALLOCATION_LAYOUT = (
    ("address", 8), ("size", 8), ("taken", 8), ("ordinal", 8), ("device", 4), ("born", 4), ("died", 4),
    ("born_thread", 2), ("died_thread", 2), ("arena", 1), ("origin", 1),
)  # fmt: skip
NODE_LAYOUT = tuple((n, 4) for n in ("type", "kernel", "attributes", "parameter_size", "context", "child", "reason"))
EDGE_LAYOUT = (("start", 4), ("end", 4), ("data", 8))
LAUNCH_LAYOUT = tuple((n, 4) for n in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes"))
MEMSET_LAYOUT = (
    ("destination", 8), ("pitch", 8), ("width", 8), ("height", 8), ("value", 4), ("element_size", 4),
)  # fmt: skip


def read_groups(raw):
    """Return the groups."""
    columns = Columns(raw)
    (count,) = columns.column(4, 1)
    node_counts, edge_counts = columns.column(4, count), columns.column(4, count)
    nodes, edges = columns.table(NODE_LAYOUT, sum(node_counts)), columns.table(EDGE_LAYOUT, sum(edge_counts))
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
    launches, memsets = columns.table(LAUNCH_LAYOUT, counts[3]), columns.table(MEMSET_LAYOUT, counts[4])
    words = [columns.column(8, counts[5]) for _ in range(25)]
    columns.finish()
    content(all(group < len(groups) for group in bodies), "a body names no group")
    rows = {
        KERNEL: launches,
        MEMSET: memsets,
        MEMCPY: [{"copy": b"".join(w[row].to_bytes(8, "little") for w in words).hex()} for row in range(counts[5])],
        GRAPH: [{"body": child} for child in children],
        RECORD: [{"event": event} for event in events],
    }
    rows[WAIT] = rows[RECORD]
    at = {id(table): 0 for table in rows.values()}
    found = [{"group": group, "nodes": [dict(node) for node in groups[group]["nodes"]]} for group in bodies]
    owners = []
    for body in found:
        for node in body["nodes"]:
            table = rows.get(node["type"]) if node["reason"] == NONE else None
            if table is not None:
                content(at[id(table)] < len(table), "a node has no row")
                node.update(table[at[id(table)]])
                at[id(table)] += 1
                owners += [node] if node["type"] == KERNEL else []
    content(all(at[id(table)] == len(table) for table in rows.values()), "a row has no node")
    read_parameters(parameters, owners)
    return found


def read_parameters(raw, nodes):
    """Give each kernel node its parameter block."""
    classes = {}
    for node in nodes:
        classes.setdefault((node["kernel"], node["parameter_size"]), []).append(node)
    content(sum(-(-n["parameter_size"] // 8) * 8 for n in nodes) == len(raw), "size of the parameters")
    at = 0
    for (_, size), members in sorted(classes.items(), key=lambda item: item[0]):
        blocks = [bytearray() for _ in members]
        for _ in range(-(-size // 8)):
            for block in blocks:
                block += raw[at : at + 8]
                at += 8
        for node, block in zip(members, blocks, strict=True):
            node["parameters"] = bytes(block[:size]).hex()


def safe(file):
    """Tell whether a file of a cache stays below its folder."""
    parts = file["path"].split("/")
    return re.fullmatch(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}", file["cache"]) and not any(
        part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts
    )


def wide(value):
    """Tell whether a value is an integer of 64 bits as text writes it."""
    if isinstance(value, str):
        return re.fullmatch("[0-9a-f]{14,16}", value)
    return type(value) is int and 0 <= value < 2**53


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
        processes = []
        for number in range(capture["processes"]):
            raw = [only(kind, number) for kind in (PROCESS, ALLOCATIONS, GROUPS, BODIES, PARAMETERS)]
            process, table, groups = read_text(raw[0]), Columns(raw[1]), read_groups(raw[2])
            process["allocations"] = table.table(ALLOCATION_LAYOUT, table.column(4, 1)[0])
            table.finish()
            process["groups"], process["bodies"] = groups, read_bodies(raw[3], groups, raw[4])
            content(re.fullmatch(r"(?!\.+$)[A-Za-z0-9._-]{1,128}", process["role"]), "role")
            processes.append(process)
        raw = only(TIMELINE, optional=True)
        times = [{"spent": {}} for _ in processes] if raw is None else read_text(raw)["processes"]
        for process, its in zip(processes, times, strict=True):
            content(all(wide(value) for value in its["spent"].values()), "a time")
            process["spent"] = its["spent"]
        content(all(e[2] < len(processes) for e in entries if PROCESS <= e[0] <= PARAMETERS), "process of a section")
        parts = [(entry[2], unpack(data, entry)) for entry in entries if entry[0] == BLOBS]
        content(all(owner == WHOLE for owner, _ in parts), "blobs of a process")
        content(all(len(part) == BLOB_CUT for _, part in parts[:-1]), "blobs are not cut as they must be")
        joined = b"".join(part for _, part in parts)
        content(sum(blob["size"] for blob in capture["blobs"]) == len(joined), "size of the blobs")
        for blob in capture["blobs"]:
            content(hashlib.sha256(joined[: blob["size"]]).hexdigest() == blob["sha256"], "digest of a blob")
            joined = joined[blob["size"] :]
        content(all(safe(file) and file["blob"] < len(capture["blobs"]) for file in capture["files"]), "a file name")
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise Refused("archive-content", f"a field is missing or odd: {error!r}") from None
    return {
        "version": f"{version[0]}.{version[1]}",
        "capture_id": identity.hex(),
        "sections": [{"kind": e[0], "process": e[2], "raw": e[6], "critical": bool(e[1])} for e in entries],
        "capture": capture,
        "processes": processes,
    }


if __name__ == "__main__":
    json.dump(read(Path(sys.argv[1]).read_bytes()), sys.stdout, indent=1, sort_keys=True)
