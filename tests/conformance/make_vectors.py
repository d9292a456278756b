"""Makes `format_spec/vectors/v1`: valid archives each with its JSON, broken ones with the code that each must get.

    python tests/conformance/make_vectors.py --update

Vectors that readers of the past had to read stay: what this makes anew must mean the same as what is there.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import zstandard

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "format_spec")]

import minireader  # noqa: E402
from helpers.archive_builder import Piece, build, changed, pieces_of  # noqa: E402
from helpers.varied import varied_capture  # noqa: E402

from foundry.archive.layout import CRITICAL, ENTRY, FOOTER, HEADER, MAGIC, WHOLE, Kind  # noqa: E402
from foundry.findings import Finding, Severity  # noqa: E402
from foundry.model import Capture, File  # noqa: E402

FOLDER = ROOT / "format_spec" / "vectors" / "v1"
SEED = 11


def rich_capture() -> Capture:
    """The first seeded capture that has a bit of everything."""
    for seed in range(SEED, 10_000):
        capture = varied_capture(random.Random(seed))
        kinds = {
            int(kind)
            for process in capture.processes
            for group in process.groups
            for kind, reason in zip(group.nodes["type"], group.nodes["reason"], strict=True)
            if reason == WHOLE
        }
        restorable = [graph.restorable for process in capture.processes for graph in process.graphs]
        timed = all(process.spent for process in capture.processes)
        full = capture.files and len(capture.processes) == 2 and True in restorable and timed
        if kinds >= {0, 1, 2, 4, 6, 7} and full:
            return capture
    raise AssertionError("no seed makes a rich capture")


def valid_cases() -> Iterator[tuple[str, bytes]]:
    """Archives that every reader of version 1 reads."""
    yield "empty", build(pieces_of(Capture((), ())))
    odd = Capture(
        (),
        (b"", b"two"),
        {"größe": "日本\n", "": ""},
        (File("triton", "a/b.ttir", 0o600, 1),),
        (Finding("some-code", Severity.ERROR, 'tab\tquote"', ""),),
    )
    yield "texts", build(pieces_of(odd))
    for seed in (1, 2, 3):
        yield f"varied-{seed}", build(pieces_of(varied_capture(random.Random(seed))))
    rich = pieces_of(rich_capture())
    yield "rich", build(rich)
    yield "no-summary", build(piece for piece in rich if piece.kind != Kind.SUMMARY)
    yield "no-timeline", build(piece for piece in rich if piece.kind != Kind.TIMELINE)
    yield "newer-minor", build([*rich, Piece(4711, WHOLE, b"from the future", flags=0)], minor=7)
    yield "other-order", build(sorted(rich, key=lambda piece: (-piece.kind, piece.process)))
    text = json.loads(rich[1].data)
    text["a field of the future"] = [1]
    yield "newer-fields", build(changed(rich, Kind.CAPTURE, data=json.dumps(text).encode()))


def broken_containers(rich: list[Piece]) -> Iterator[tuple[str, bytes, str]]:
    """Faults of the container."""
    whole = build(rich)
    yield "empty", b"", "archive-empty"
    yield "text", b"#!/bin/sh\necho no archive\n" * 20, "archive-not-one"
    yield "elf", b"\x7fELF" + bytes(500), "archive-not-one"
    yield "zeros", bytes(4096), "archive-not-one"
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
    yield "empty-section", build(changed(rich, Kind.GROUPS, data=b"")), "archive-content"
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
    ):
        yield text(Kind.CAPTURE, name, lambda value, path=path: value["files"][0].update(path=path))
    yield text(Kind.CAPTURE, "cache-up", lambda value: value["files"][0].update(cache=".."))
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
    at = {kind: next(piece.data for piece in rich if piece.kind == kind) for kind in Kind if kind != Kind.SUMMARY}
    most = (0xFFFFFFFF).to_bytes(4, "little")
    for kind in (Kind.ALLOCATIONS, Kind.GROUPS, Kind.BODIES):
        yield raw(kind, f"{kind.name.lower()}-count-of-2-32", most + at[kind][4:])
        yield raw(kind, f"{kind.name.lower()}-cut", at[kind][:-1])
        yield raw(kind, f"{kind.name.lower()}-and-more", at[kind] + b"\0")
    yield raw(Kind.PARAMETERS, "parameters-cut", at[Kind.PARAMETERS][:-8])
    yield raw(Kind.PARAMETERS, "parameters-and-more", at[Kind.PARAMETERS] + bytes(8))
    yield raw(Kind.BODIES, "body-without-group", at[Kind.BODIES][:24] + most + at[Kind.BODIES][28:])
    blobs = next(piece for piece in rich if piece.kind == Kind.BLOBS)
    half = len(blobs.data) // 2
    two = [replace(blobs, data=part, stored=None) for part in (blobs.data[:half], blobs.data[half:])]
    others = [piece for piece in rich if piece.kind != Kind.BLOBS]
    yield "blobs-cut-elsewhere", build([*others, *two]), "archive-content"
    yield "blobs-of-a-process", build(changed(rich, Kind.BLOBS, process=0)), "archive-content"
    yield "section-of-no-process", build([*rich, replace(rich[2], process=2)]), "archive-content"


def cuts(whole: bytes) -> Iterator[tuple[str, bytes, str]]:
    """The archive cut at every boundary in it, and a byte to each side."""
    footer = len(whole) - FOOTER.size
    table_at = int.from_bytes(whole[footer : footer + 8], "little")
    places = {HEADER.size, table_at, footer, len(whole)}
    for at in range(table_at, footer, ENTRY.size):
        places.update((at, ENTRY.unpack_from(whole, at)[4]))
    for place in sorted(places):
        for at in (place - 1, place, place + 1):
            if at < len(whole):
                yield f"cut-{at}", whole[:at], "archive-truncated"


def flips(whole: bytes) -> Iterator[tuple[str, bytes]]:
    """Every byte of header, table and footer changed: by one bit, and by all."""
    footer = len(whole) - FOOTER.size
    table_at = int.from_bytes(whole[footer : footer + 8], "little")
    for at in (*range(HEADER.size), *range(table_at, len(whole))):
        for mask in (1, 0x80, 0xFF):
            data = bytearray(whole)
            data[at] ^= mask
            yield f"flip-{at}-{mask:02x}", bytes(data)


def invalid_cases() -> Iterator[tuple[str, bytes, str]]:
    """Everything that a reader must refuse, with the code."""
    rich = pieces_of(rich_capture())
    assert all(piece.flags == CRITICAL or piece.kind in (Kind.SUMMARY, Kind.TIMELINE) for piece in rich)
    yield from broken_containers(rich)
    yield from broken_sections(rich)
    yield from broken_contents(rich)


def as_text(value: object) -> str:
    """The JSON of a valid vector as it is kept."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all vectors."""
    (FOLDER / "valid").mkdir(parents=True, exist_ok=True)
    (FOLDER / "invalid").mkdir(parents=True, exist_ok=True)
    for name, data in valid_cases():
        (FOLDER / "valid" / f"{name}.fdry").write_bytes(data)
        (FOLDER / "valid" / f"{name}.json").write_text(as_text(minireader.read(data)), encoding="utf-8")
    codes = {}
    for name, data, code in invalid_cases():
        (FOLDER / "invalid" / f"{name}.fdry").write_bytes(data)
        codes[name] = code
    (FOLDER / "invalid" / "codes.json").write_text(as_text(codes), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("pass `--update` to replace the vectors; the diff of their JSON is to be looked at")
    main()
