"""Archives that must be refused, each with its code: everything is sound but the one thing that the name tells."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import zstandard
from helpers.archive_builder import Piece, build, changed

from foundry.archive.layout import HEADER, MAGIC, WHOLE, Kind

Text = Callable[[Kind, str, Callable[[Any], object]], tuple[str, bytes, str]]
"""Makes a case of a text section by changing its object."""

NAMES_THAT_LEAD_ELSEWHERE = {
    "empty": "",
    "up": "..",
    "dot": ".",
    "absolute": "/lib/a.so",
    "folder": "x/a.so",
    "zero": "a\0.so",
    "long": "x" * 256,
}


def broken_containers(rich: list[Piece]) -> Iterator[tuple[str, bytes, str]]:
    """Faults of the container."""
    whole = build(rich)
    yield "empty", b"", "archive-empty"
    yield "text", b"#!/bin/sh\necho no archive\n" * 20, "archive-not-one"
    yield "elf", b"\x7fELF" + bytes(500), "archive-not-one"
    yield "zeros", bytes(4096), "archive-not-one"
    for name, data in other_files():
        yield name, data, "archive-not-one"
    yield "magic-in-text-mode", MAGIC.replace(b"\r\n", b"\n") + whole[8:], "archive-not-one"
    yield "magic-only", MAGIC, "archive-truncated"
    yield "half-magic", MAGIC[:3], "archive-truncated"
    yield "header-only", whole[: HEADER.size], "archive-truncated"
    yield "no-last-byte", whole[:-1], "archive-truncated"
    yield "one-more-byte", whole + b"\0", "archive-truncated"
    yield "two-joined", whole + whole, "archive-footer"
    yield "newer-major", build(rich, major=2), "archive-too-new"
    yield "newest-major", build(rich, major=65535), "archive-too-new"
    yield "major-zero", build(rich, major=0), "archive-header"
    yield "header-reserved", build(rich, header=HEADER.pack(MAGIC, 1, 0, 1, 0, 0)), "archive-header"
    yield "versions-differ", build(rich, footer_version=(1, 3)), "archive-header"
    yield "count-of-2-32", build(rich, count=0xFFFFFFFF), "archive-limit"
    yield "count-too-low", build(rich, count=len(rich) - 1), "archive-footer"
    yield "table-at-2-63", build(rich, table_at=1 << 63), "archive-footer"
    yield "table-at-0", build(rich, table_at=0), "archive-footer"
    yield "wrong-capture-id", build(rich, identity=bytes(32)), "archive-footer"
    yield "hole-before-table", build(rich, gap=bytes(9)), "archive-layout"
    at = HEADER.size
    frames = [piece.frame for piece in rich]
    yield "overlap", build([rich[0], replace(rich[1], offset=at), *rich[2:]]), "archive-layout"
    apart = replace(rich[0], stored=frames[0] + b"\0\0", stored_size=len(frames[0]))
    yield "hole", build([apart, *rich[1:]]), "archive-layout"
    yield "offset-of-2-63", build(changed(rich, Kind.CAPTURE, offset=1 << 63)), "archive-layout"
    yield "size-of-2-63", build(changed(rich, Kind.CAPTURE, stored_size=1 << 63)), "archive-layout"
    yield "nothing-stored", build([*rich, Piece(Kind.BLOBS, WHOLE, b"", stored=b"")]), "archive-layout"
    yield "raw-of-2-63", build(changed(rich, Kind.GROUPS, raw=1 << 63)), "archive-limit"
    yield "text-past-limit", build(changed(rich, Kind.PROCESS, raw=(1 << 26) + 1)), "archive-limit"
    yield "unknown-critical", build([*rich, Piece(4711, WHOLE, b"x")]), "archive-section-unknown"
    yield "kind-zero", build([*rich, Piece(0, WHOLE, b"x")]), "archive-section-unknown"
    yield "unknown-flag", build([*rich, Piece(4711, WHOLE, b"x", flags=2)]), "archive-table"
    yield "reserved-in-table", build(changed(rich, Kind.CAPTURE, zero=1)), "archive-table"
    yield "capture-twice", build([*rich, rich[1]]), "archive-table"
    timeline = next(piece for piece in rich if piece.kind == Kind.TIMELINE)
    yield "timeline-twice", build([*rich, timeline]), "archive-table"
    past_limit = build(changed(rich, Kind.TIMELINE, raw=(1 << 26) + 1))
    yield "timeline-past-limit", past_limit, "archive-limit"
    for kind in (Kind.CAPTURE, Kind.PROCESS, Kind.ALLOCATIONS, Kind.GROUPS, Kind.BODIES, Kind.PARAMETERS):
        name = f"without-{kind.name.lower()}"
        yield name, build(piece for piece in rich if piece.kind != kind), "archive-section-missing"


def other_files() -> Iterator[tuple[str, bytes]]:
    """Files of other kinds that people hand over by mistake."""
    member = zipfile.ZipInfo("archive/data.pkl")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(member, bytes(200))
    yield "zip", packed.getvalue()
    yield "gzip", gzip.compress(b"an archive" * 30, mtime=0)
    yield "zstd", zstandard.ZstdCompressor().compress(b"an archive" * 30)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0\0")),
        (b"IEND", b""),
    )
    image = b"\x89PNG\r\n\x1a\n"
    for kind, data in chunks:
        image += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    yield "png", image
    head = json.dumps({"weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    yield "safetensors", struct.pack("<Q", len(head)) + head + bytes(16)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive_of_files:
        archive_of_files.addfile(tarfile.TarInfo("x"))
    yield "tar", packed.getvalue()
    yield "json", b'{"processes": 1}'
    yield "pickle", b"\x80\x04K\x01."
    yield "fatbin", struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64) + bytes(64)


def broken_sections(rich: list[Piece]) -> Iterator[tuple[str, bytes, str]]:
    """Faults of a section's frame."""
    text = rich[1].data
    small = zstandard.ZstdCompressor().compress(text)
    yield "wrong-digest", build(changed(rich, Kind.CAPTURE, digest=bytes(32))), "archive-section-damaged"
    wrong_timeline = build(changed(rich, Kind.TIMELINE, digest=bytes(32)))
    yield "timeline-wrong-digest", wrong_timeline, "archive-section-damaged"
    yield "no-frame", build(changed(rich, Kind.CAPTURE, stored=b"{}")), "archive-section-damaged"
    yield "frame-and-more", build(changed(rich, Kind.CAPTURE, stored=small + b"!")), "archive-section-damaged"
    yield "two-frames", build(changed(rich, Kind.CAPTURE, stored=small + small)), "archive-section-damaged"
    yield "cut-frame", build(changed(rich, Kind.CAPTURE, stored=small[:-1])), "archive-section-damaged"
    yield "raw-too-low", build(changed(rich, Kind.CAPTURE, raw=len(text) - 1)), "archive-section-size"
    yield "raw-too-high", build(changed(rich, Kind.CAPTURE, raw=len(text) + 1)), "archive-section-size"
    sizeless = zstandard.ZstdCompressor(write_content_size=False).compress(text)
    yield "frame-without-size", build(changed(rich, Kind.CAPTURE, stored=sizeless)), "archive-section-size"
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(1 << 26))
    yield "bomb", build(changed(rich, Kind.CAPTURE, stored=bomb)), "archive-section-size"
    # Single-segment frame, 4-byte size of 16, then one block that repeats a byte 128 KiB times.
    lying = bytes.fromhex("28b52ffda01000000003001000")
    yield "bomb-that-lies", build(changed(rich, Kind.CAPTURE, stored=lying, raw=16)), "archive-section-damaged"
    for kind in (Kind.ALLOCATIONS, Kind.GROUPS, Kind.BODIES, Kind.CAPTURE, Kind.PROCESS, Kind.TIMELINE):
        yield f"empty-{kind.name.lower()}", build(changed(rich, kind, data=b"")), "archive-content"
    none_stored = [piece for piece in rich if piece.kind != Kind.BLOBS]
    yield "empty-blobs", build([*none_stored, Piece(Kind.BLOBS, WHOLE, b"")]), "archive-content"
    yield "empty-blobs-behind", build([*rich, Piece(Kind.BLOBS, WHOLE, b"")]), "archive-content"
    skippable = (0x184D2A50).to_bytes(4, "little") + (4).to_bytes(4, "little") + b"skip"
    yield "skippable-frame", build(changed(rich, Kind.CAPTURE, stored=skippable)), "archive-section-size"


def broken_contents(rich: list[Piece]) -> Iterator[tuple[str, bytes, str]]:
    """Sections that unpack well and do not say what they must."""

    def text(kind: Kind, name: str, change: object) -> tuple[str, bytes, str]:
        piece = next(piece for piece in rich if piece.kind == kind)
        value = json.loads(piece.data)
        change(value)  # type: ignore[operator]
        return name, build(changed(rich, kind, data=json.dumps(value).encode())), "archive-content"

    def raw(kind: Kind, name: str, data: bytes) -> tuple[str, bytes, str]:
        return name, build(changed(rich, kind, data=data)), "archive-content"

    yield raw(Kind.CAPTURE, "bad-utf-8", b'{"processes": 2, "context": {"a": "\xff"}}')
    yield raw(Kind.CAPTURE, "no-json", b"{'processes': 2}")
    yield raw(Kind.CAPTURE, "a-list", b"[]")
    yield raw(Kind.CAPTURE, "a-fraction", rich[1].data.replace(b'"processes":2', b'"processes":2.0'))
    yield raw(Kind.CAPTURE, "repeated-key", rich[1].data.replace(b'{"blobs"', b'{"processes":2,"blobs"', 1))
    yield raw(Kind.CAPTURE, "deep", b"[" * 100_000)
    yield text(Kind.CAPTURE, "processes-missing", lambda value: value.pop("processes"))
    yield text(Kind.CAPTURE, "processes-as-text", lambda value: value.update(processes="2"))
    yield text(Kind.CAPTURE, "one-process-too-few", lambda value: value.update(processes=1))
    for name, path in (
        ("name-up", "../x"),
        ("name-absolute", "/etc/x"),
        ("name-dots", "a/./b"),
        ("name-empty", ""),
        ("name-double", "a//b"),
        ("name-backslash", "a\\..\\b"),
        ("name-zero", "a\0b"),
        ("name-only-up", ".."),
        ("name-up-behind", "a/.."),
        ("name-ends-in-slash", "a/"),
        ("name-slash", "/"),
        ("name-drive", "C:\\x"),
    ):
        yield text(Kind.CAPTURE, name, lambda value, path=path: value["files"][0].update(path=path))
    for name, cache in (
        ("up", ".."),
        ("dot", "."),
        ("empty", ""),
        ("slash", "a/b"),
        ("zero", "a\0"),
        ("long", "x" * 129),
    ):
        yield text(Kind.CAPTURE, f"cache-{name}", lambda value, cache=cache: value["files"][0].update(cache=cache))
    for name, role in (
        ("up", ".."),
        ("empty", ""),
        ("dots", "...."),
        ("zero", "a\0"),
        ("line", "a\n"),
        ("long", "x" * 129),
    ):
        yield text(Kind.PROCESS, f"role-{name}", lambda value, role=role: value.update(role=role))
    yield text(Kind.CAPTURE, "file-twice", lambda value: value["files"].append(value["files"][0]))
    yield text(Kind.CAPTURE, "file-mode", lambda value: value["files"][0].update(mode=512))
    yield text(Kind.CAPTURE, "processes-of-2-32", lambda value: value.update(processes=0xFFFFFFFF))
    yield text(Kind.CAPTURE, "processes-of-2-63", lambda value: value.update(processes=1 << 63))
    yield text(Kind.CAPTURE, "file-blob-of-2-32", lambda value: value["files"][0].update(blob=0xFFFFFFFF))
    yield text(Kind.CAPTURE, "blob-size-of-2-63", lambda value: value["blobs"][0].update(size=f"{1 << 63:x}"))
    yield text(Kind.CAPTURE, "blob-size-plain-2-63", lambda value: value["blobs"][0].update(size=1 << 63))
    yield text(Kind.CAPTURE, "packages-missing", lambda value: value.pop("packages"))
    yield text(Kind.CAPTURE, "packages-number", lambda value: value.update(packages={"torch": 2}))
    yield text(Kind.PROCESS, "libraries-missing", lambda value: value.pop("libraries"))
    yield from broken_libraries(text)
    yield text(Kind.CAPTURE, "file-without-blob", lambda value: value["files"][0].update(blob=4096))
    yield text(Kind.CAPTURE, "blob-size", lambda value: value["blobs"][0].update(size=value["blobs"][0]["size"] + 1))
    yield text(Kind.CAPTURE, "blob-digest", lambda value: value["blobs"][0].update(sha256="00" * 32))
    yield text(Kind.PROCESS, "role-with-slash", lambda value: value.update(role="../rank-0"))
    yield text(Kind.PROCESS, "role-missing", lambda value: value.pop("role"))
    yield raw(Kind.TIMELINE, "timeline-no-json", b"1 ns")
    yield text(Kind.TIMELINE, "timeline-without-processes", lambda value: value.pop("processes"))
    yield text(Kind.TIMELINE, "timeline-one-process-too-few", lambda value: value["processes"].pop())
    yield text(Kind.TIMELINE, "timeline-one-process-too-many", lambda value: value["processes"].append({"spent": {}}))
    yield text(Kind.TIMELINE, "timeline-without-spent", lambda value: value["processes"][1].pop("spent"))
    for name, odd in (("list", []), ("negative", {"a_ns": -1}), ("text", {"a_ns": "1"}), ("truth", {"a_ns": True})):
        yield text(Kind.TIMELINE, f"timeline-{name}", lambda value, odd=odd: value["processes"][0].update(spent=odd))
    at = {
        kind: next(piece.data for piece in rich if piece.kind == kind)
        for kind in Kind
        if kind not in (Kind.SUMMARY, Kind.RELOCATIONS, Kind.PREFETCH, Kind.DEPENDENCIES)
    }
    most = (0xFFFFFFFF).to_bytes(4, "little")
    for kind in (Kind.ALLOCATIONS, Kind.GROUPS, Kind.BODIES):
        yield raw(kind, f"{kind.name.lower()}-count-of-2-32", most + at[kind][4:])
        yield raw(kind, f"{kind.name.lower()}-cut", at[kind][:-1])
        yield raw(kind, f"{kind.name.lower()}-and-more", at[kind] + b"\0")
    for count in range(1, 6):
        data = at[Kind.BODIES]
        yield raw(Kind.BODIES, f"bodies-count-{count}-of-2-32", data[: 4 * count] + most + data[4 * count + 4 :])
    groups = int.from_bytes(at[Kind.GROUPS][:4], "little")
    for name, place in (("nodes", 4), ("edges", 4 + 4 * groups)):
        data = at[Kind.GROUPS]
        yield raw(Kind.GROUPS, f"groups-{name}-of-2-32", data[:place] + most + data[place + 4 :])
    yield raw(Kind.PARAMETERS, "parameters-cut", at[Kind.PARAMETERS][:-8])
    yield raw(Kind.PARAMETERS, "parameters-and-more", at[Kind.PARAMETERS] + bytes(8))
    yield raw(Kind.BODIES, "body-without-group", at[Kind.BODIES][:24] + most + at[Kind.BODIES][28:])
    blobs = next(piece for piece in rich if piece.kind == Kind.BLOBS)
    half = len(blobs.data) // 2
    two = [replace(blobs, data=part, stored=None) for part in (blobs.data[:half], blobs.data[half:])]
    others = [piece for piece in rich if piece.kind != Kind.BLOBS]
    yield raw(Kind.CAPTURE, "byte-order-mark", b"\xef\xbb\xbf" + rich[1].data)
    yield "blobs-cut-elsewhere", build([*others, *two]), "archive-content"
    yield "blobs-of-a-process", build(changed(rich, Kind.BLOBS, process=0)), "archive-content"
    yield "section-of-no-process", build([*rich, replace(rich[2], process=2)]), "archive-content"


def broken_proofs(rich: list[Piece]) -> Iterator[tuple[str, bytes, str]]:
    """Relocations that name no addresses, or more than there is."""
    at, piece = next((at, piece) for at, piece in enumerate(rich) if piece.kind == Kind.RELOCATIONS)
    counts = struct.unpack_from("<5I", piece.data)
    assert all(counts), f"the first process has no relocation of some kind: {counts}"

    def raw(name: str, data: bytes) -> tuple[str, bytes, str]:
        return f"relocations-{name}", build(changed(rich, Kind.RELOCATIONS, data=data)), "archive-content"

    def column(number: int) -> int:
        """Where a column begins: graphs, memsets, then row and offset of parameters, copies and texts."""
        sizes = [counts[0], counts[1], *(count for count in counts[2:] for _ in (0, 1))]
        return 28 + 4 * sum(sizes[:number])

    def word(name: str, number: int, value: int) -> tuple[str, bytes, str]:
        place = column(number)
        return raw(name, piece.data[:place] + value.to_bytes(4, "little") + piece.data[place + 4 :])

    yield raw("cut", piece.data[:-1])
    yield raw("and-more", piece.data + bytes(4))
    yield raw("empty", b"")
    for number, name in enumerate(("graphs", "memsets", "parameters", "copies", "texts")):
        data = piece.data[: 4 * number] + b"\xff" * 4 + piece.data[4 * number + 4 :]
        yield raw(f"{name}-of-2-32", data)
    for number, name in ((0, "graph"), (1, "memset"), (2, "parameter"), (4, "copy"), (6, "text")):
        yield word(f"{name}-of-2-31", number, 1 << 31)
        yield word(f"{name}-past-the-last", number, 1000)
    yield word("parameter-past-its-block", 3, 4096)
    yield word("parameter-no-address", 3, 1)
    yield word("copy-past-its-end", 5, 193)
    yield word("copy-no-address", 5, 0)
    yield word("text-no-number", 7, 0)
    yield word("text-no-address", 7, piece_offset(rich, piece.process, b"[1, ") + 1)
    yield word("text-inside-a-number", 7, piece_offset(rich, piece.process, b"[1, ") + 5)
    yield word("graph-with-a-reason", 0, refused_graph(rich, piece.process))
    yield "relocations-twice", build([*rich, rich[at]]), "archive-table"
    yield "relocations-of-no-process", build([*rich, replace(rich[at], process=2)]), "archive-content"
    yield "relocations-of-the-whole", build([*rich, replace(rich[at], process=WHOLE)]), "archive-content"


def broken_dependencies(rich: list[Piece]) -> Iterator[tuple[str, bytes, str]]:
    """Orders of dependencies that a node does not have, or that are none."""
    piece = next(piece for piece in rich if piece.kind == Kind.DEPENDENCIES)
    rows, count = struct.unpack_from("<2I", piece.data)
    groups, nodes, places = (
        list(struct.unpack_from(f"<{size}I", piece.data, at))
        for size, at in ((rows, 8), (rows, 8 + 4 * rows), (count, 8 + 8 * rows))
    )
    assert max(places) < 9 and rows > 2

    def raw(name: str, data: bytes) -> tuple[str, bytes, str]:
        return f"dependencies-{name}", build(changed(rich, Kind.DEPENDENCIES, data=data)), "archive-content"

    def columns(name: str, *lists: list[int]) -> tuple[str, bytes, str]:
        numbers = [len(lists[0]), len(lists[2]), *lists[0], *lists[1], *lists[2]]
        return raw(name, struct.pack(f"<{len(numbers)}I", *numbers))

    yield raw("cut", piece.data[:-1])
    yield raw("and-more", piece.data + bytes(4))
    yield raw("empty", b"")
    yield raw("rows-of-2-32", b"\xff" * 4 + piece.data[4:])
    yield raw("places-of-2-32", piece.data[:4] + b"\xff" * 4 + piece.data[8:])
    yield columns("group-past-the-last", [*groups[:-1], 1000], nodes, places)
    yield columns("node-past-the-last", groups, [*nodes[:-1], 1000], places)
    yield columns("of-a-node-without", [groups[0], *groups], [0, *nodes], places)
    yield columns("row-twice", [groups[0], *groups], [nodes[0], *nodes], [*places, *places])
    yield columns("out-of-order", groups[::-1], nodes[::-1], places[::-1])
    yield columns("place-past-the-last", groups, nodes, [9, *places[1:]])
    yield columns("place-of-2-32", groups, nodes, [WHOLE, *places[1:]])
    yield columns("place-twice", groups, nodes, [places[1], *places[1:]])
    yield columns("in-the-plain-order", groups, nodes, [*places[:-2], *sorted(places[-2:])])
    yield columns("one-place-too-many", groups, nodes, [*places, 0])
    yield columns("one-place-too-few", groups, nodes, places[:-1])
    yield "dependencies-twice", build([*rich, piece]), "archive-table"
    yield "dependencies-of-no-process", build([*rich, replace(piece, process=9)]), "archive-content"
    yield "dependencies-of-the-whole", build([*rich, replace(piece, process=WHOLE)]), "archive-content"


def broken_prefetch(rich: list[Piece]) -> Iterator[tuple[str, bytes, str]]:
    """Files of a start that have no whole path, or ranges that lie elsewhere."""
    piece = next(piece for piece in rich if piece.kind == Kind.PREFETCH)

    def text(name: str, change: Callable[[dict[str, Any]], object]) -> tuple[str, bytes, str]:
        value = json.loads(piece.data)
        change(value)
        return (
            f"prefetch-{name}",
            build(changed(rich, Kind.PREFETCH, data=json.dumps(value).encode())),
            "archive-content",
        )

    yield "prefetch-no-json", build(changed(rich, Kind.PREFETCH, data=b"/lib/x.so")), "archive-content"
    yield "prefetch-twice", build([*rich, piece]), "archive-table"
    for key in ("folders", "files"):
        yield text(f"without-{key}", lambda value, key=key: value.pop(key))
    for key in ("folder", "name", "size", "ranges"):
        yield text(f"file-without-{key}", lambda value, key=key: value["files"][0].pop(key))
    for name, folder in (
        ("relative", "usr/lib"),
        ("up", "/usr/../etc"),
        ("dot", "/usr/./lib"),
        ("double", "/usr//lib"),
        ("ends-in-slash", "/usr/"),
        ("zero", "/usr\0"),
        ("of-a-user", "~root/x"),
        ("number", 1),
    ):
        yield text(f"folder-{name}", lambda value, folder=folder: value["folders"].__setitem__(0, folder))
    for name, odd in (("empty", ""), ("slash", "a/b"), ("up", ".."), ("long", "x" * 256), ("number", 1)):
        yield text(f"name-{name}", lambda value, odd=odd: value["files"][0].update(name=odd))
    for name, ranges in (
        ("odd", [0]),
        ("empty", [0, 0]),
        ("overlap", [0, 8, 7, 8]),
        ("backwards", [8, 8, 0, 8]),
        ("past-the-end", [1 << 30, 2]),
        ("negative", [-1, 2]),
        ("text", ["0", 2]),
    ):
        yield text(f"ranges-{name}", lambda value, ranges=ranges: value["files"][0].update(ranges=ranges))
    for name, size in (("2-53", 1 << 53), ("wide", f"{1 << 53:x}"), ("negative", -1)):
        yield text(f"size-{name}", lambda value, size=size: value["files"][2].update(size=size))
    yield text("folder-past-the-last", lambda value: value["files"][0].update(folder=4096))
    yield text("file-twice", lambda value: value["files"].append(value["files"][0]))
    yield text("path-too-long", lambda value: value["folders"].__setitem__(0, "/x" * 2048))


def piece_offset(rich: list[Piece], process: int, wanted: bytes) -> int:
    """Where something stands in the metadata of the process's first graph with JSON, in UTF-8."""
    text = next(piece.data for piece in rich if (piece.kind, piece.process) == (Kind.PROCESS, process))
    found = next(graph["metadata"] for graph in json.loads(text)["graphs"] if graph["metadata"].startswith("{"))
    return found.encode().index(wanted)  # type: ignore[no-any-return]


def refused_graph(rich: list[Piece], process: int) -> int:
    """The first graph that has a reason."""
    text = next(piece.data for piece in rich if (piece.kind, piece.process) == (Kind.PROCESS, process))
    return next(at for at, graph in enumerate(json.loads(text)["graphs"]) if graph["reason_code"])


def broken_libraries(text: Text) -> Iterator[tuple[str, bytes, str]]:
    """Library files that are named, or blobs said to lie in them, against the rules."""
    sound = {"name": "a.so", "build_id": "00ff", "package": "", "version": ""}
    faults: dict[str, object] = {
        **{f"name-{name}": {"name": bad} for name, bad in NAMES_THAT_LEAD_ELSEWHERE.items()},
        "build-id-of-letters": {"build_id": "xyz0"},
        "build-id-upper": {"build_id": "00FF"},
        "build-id-odd": {"build_id": "00f"},
        "build-id-long": {"build_id": "00" * 65},
        "without-package": {"package": None},
    }
    for name, fault in faults.items():
        listed = [{**sound, **fault}]  # type: ignore[dict-item]
        yield text(Kind.PROCESS, f"library-{name}", lambda value, listed=listed: value.update(libraries=listed))
    later = {**sound, "name": "b.so"}
    yield text(Kind.PROCESS, "libraries-out-of-order", lambda value: value.update(libraries=[later, sound]))
    yield text(Kind.PROCESS, "libraries-twice", lambda value: value.update(libraries=[sound, sound]))
    blob = {"size": 64, "sha256": "00" * 32}
    place = {"name": "a.so", "build_id": "00ff", "offset": 0, "size": 64, "architecture": 0}
    faults = {
        **{f"name-{name}": {"name": bad} for name, bad in NAMES_THAT_LEAD_ELSEWHERE.items()},
        "build-id-empty": {"build_id": ""},
        "build-id-upper": {"build_id": "00FF"},
        "size-of-0": {"size": 0, "architecture": 90},
        "size-past-limit": {"size": (1 << 30) + 1, "architecture": 90},
        "size-of-2-63": {"size": f"{1 << 63:x}", "architecture": 90},
        "other-size": {"size": 65},
        "offset-past-limit": {"offset": (1 << 53) - 63},
        "offset-of-2-63": {"offset": f"{1 << 63:x}"},
        "architecture-past-limit": {"architecture": 10_000},
        "architecture-of-2-32": {"architecture": 0xFFFFFFFF},
        "architecture-text": {"architecture": "90"},
        "offset-missing": {"offset": None},
    }
    for name, fault in faults.items():
        odd = {**blob, "library": {key: value for key, value in {**place, **fault}.items() if value is not None}}  # type: ignore[dict-item]
        yield text(Kind.CAPTURE, f"outside-{name}", lambda value, odd=odd: value["blobs"].append(odd))
    for name, odd in (
        ("null", {**blob, "library": None}),
        ("list", {**blob, "library": []}),
        ("empty-blob", {**blob, "size": 0, "library": {**place, "architecture": 90}}),
        ("digest-missing", {"size": 64, "library": place}),
        ("digest-upper", {**blob, "sha256": "FF" * 32, "library": place}),
        ("blob-past-limit", {**blob, "size": (1 << 30) + 1, "library": {**place, "architecture": 90}}),
    ):
        yield text(Kind.CAPTURE, f"outside-{name}", lambda value, odd=odd: value["blobs"].append(odd))
    there = {**place, "architecture": 90}
    yield text(Kind.CAPTURE, "outside-and-stored", lambda value: value["blobs"][0].update(size=9, library=there))
