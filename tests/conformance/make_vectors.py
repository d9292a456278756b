"""Makes `format_spec/vectors/v1`: valid archives each with its JSON, broken ones with the code that each must get.

    python tests/conformance/make_vectors.py --update

Vectors that readers of the past had to read stay: what this makes anew must mean the same as what is there.
"""

from __future__ import annotations

import json
import random
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "format_spec"), str(Path(__file__).parent)]

import minireader  # noqa: E402
from broken_vectors import (  # noqa: E402
    broken_containers,
    broken_contents,
    broken_dependencies,
    broken_prefetch,
    broken_proofs,
    broken_sections,
)
from helpers.archive_builder import Piece, build, changed, pieces_of  # noqa: E402
from helpers.proofs import proven  # noqa: E402
from helpers.thin_library import CUBINS, PLACES, library_file  # noqa: E402
from helpers.varied import varied_capture  # noqa: E402

from foundry.archive.layout import CRITICAL, ENTRY, FOOTER, HEADER, WHOLE, Kind  # noqa: E402
from foundry.findings import Finding, Severity  # noqa: E402
from foundry.model import Capture, File, Format, Library, StartFile  # noqa: E402

FOLDER = ROOT / "format_spec" / "vectors" / "v1"
SEED = 11
PROVEN_SEED = 1060
START_FILES = (
    StartFile("/usr/lib/libkernels.so.1", (1 << 30) + 1, ((0, 4096), (4096, 65536), (1 << 30, 1))),
    StartFile("~/größe/__pycache__/a.cpython-312.pyc", 70),
    StartFile("/at the root", 0),
    StartFile("~/weights", (1 << 53) - 1, ((0, (1 << 53) - 1),)),
)


def rich_capture() -> Capture:
    """The first seeded capture that has a bit of everything."""
    for seed in range(SEED, 10_000):
        capture = varied_capture(random.Random(seed), orders=False)
        kinds = {
            int(kind)
            for process in capture.processes
            for group in process.groups
            for kind, reason in zip(group.nodes["type"], group.nodes["reason"], strict=True)
            if reason == WHOLE
        }
        restorable = [graph.restorable for process in capture.processes for graph in process.graphs]
        timed = all(process.spent for process in capture.processes)
        told = capture.packages and all(process.libraries for process in capture.processes)
        full = capture.files and len(capture.processes) == 2 and True in restorable and timed and told
        if kinds >= {0, 1, 2, 4, 6, 7} and full:
            return capture
    raise AssertionError("no seed makes a rich capture")


def small_capture() -> Capture:
    """The first seeded capture of one process that has graphs, blobs, times and libraries."""
    for seed in range(SEED, 10_000):
        capture = varied_capture(random.Random(seed), processes=1, orders=False)
        (process,) = capture.processes
        if process.graphs and capture.blobs and process.spent and process.libraries and capture.files:
            return capture
    raise AssertionError("no seed makes a small capture")


def thin_capture() -> Capture:
    """The rich capture with four more blobs, of which three lie in the library file beside the vector."""
    rich = rich_capture()
    blobs = (*rich.blobs, *CUBINS, b"a blob that is stored")
    at = len(rich.blobs)
    outside = {at: PLACES[0], at + 1: PLACES[1], at + 2: PLACES[2]}
    return replace(rich, blobs=blobs, outside=outside)


def proven_pieces() -> list[Piece]:
    """A capture of one process with a proof that names addresses of every kind."""
    capture = varied_capture(random.Random(PROVEN_SEED), processes=1, orders=False)
    pieces = pieces_of(replace(capture, processes=tuple(proven(process) for process in capture.processes)))
    assert [piece.flags for piece in pieces if piece.kind == Kind.RELOCATIONS] == [0]
    return pieces


def prefetch_pieces() -> list[Piece]:
    """A small capture with the files that its start reads."""
    pieces = pieces_of(replace(small_capture(), start_files=START_FILES))
    assert [piece.flags for piece in pieces if piece.kind == Kind.PREFETCH] == [0]
    return pieces


def ordered_pieces() -> list[Piece]:
    """The first seeded capture with orders in two groups of its first process, and in two nodes of one."""
    for seed in range(SEED, 10_000):
        pieces = pieces_of(varied_capture(random.Random(seed)))
        for piece in pieces:
            if (piece.kind, piece.process) == (Kind.DEPENDENCIES, 0):
                rows = int.from_bytes(piece.data[:4], "little")
                groups = set(struct.unpack_from(f"<{rows}I", piece.data, 8))
                if 1 < len(groups) < rows:
                    assert piece.flags == 0
                    return pieces
    raise AssertionError("no seed makes a capture with orders")


def unlinked_capture() -> Capture:
    """One of which an earlier version told that its PTX has no linked code beside it."""
    capture = varied_capture(random.Random(1), orders=False)
    (process,) = capture.processes
    image = next(image for image in process.images if image.format == Format.PTX and len(capture.blobs[image.blob]))
    text = "the driver will compile this PTX again on a restore: its linked cubin was not recorded"
    found = Finding("image-not-linked", Severity.NOTE, text, f"{process.role}, image {image.key.hex()[:12]}")
    return replace(capture, findings=(capture.findings[0], found, *capture.findings[1:]))


def linked_capture() -> Capture:
    """The small capture, its first image with linked code beside what the program handed over."""
    small = small_capture()
    (process,) = small.processes
    first, *others = process.images
    images = (replace(first, original=first.blob, blob=len(small.blobs)), *others)
    blobs = (*small.blobs, b"\x7fELF, which nobody loads")
    return replace(small, processes=(replace(process, images=images),), blobs=blobs)


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
    yield "varied-1", build(pieces_of(unlinked_capture()))
    for seed in (2, 3):
        yield f"varied-{seed}", build(pieces_of(varied_capture(random.Random(seed), orders=False)))
    yield "linked", build(pieces_of(linked_capture()))
    rich = pieces_of(rich_capture())
    yield "small", build(pieces_of(small_capture()))
    yield "thin", build(pieces_of(thin_capture()))
    all_outside = Capture((), CUBINS[:1], outside={0: PLACES[0]})
    yield "thin-without-blobs-section", build(pieces_of(all_outside))
    libraries = tuple(
        Library(*words) for words in (("a.so", "", "", ""), ("a.so", "00", "", ""), ("a.so", "00", "p", "1"))
    )
    process = replace(small_capture().processes[0], libraries=libraries)
    yield "libraries", build(pieces_of(replace(small_capture(), processes=(process,), packages={"torch": "2.11.0"})))
    yield "rich", build(rich)
    yield "proven", build(proven_pieces())
    yield "prefetch", build(prefetch_pieces())
    yield "dependencies", build(ordered_pieces())
    yield "no-summary", build(piece for piece in rich if piece.kind != Kind.SUMMARY)
    yield "no-timeline", build(piece for piece in rich if piece.kind != Kind.TIMELINE)
    yield "newer-minor", build([*rich, Piece(4711, WHOLE, b"from the future", flags=0)], minor=7)
    yield "other-order", build(sorted(rich, key=lambda piece: (-piece.kind, piece.process)))
    text = json.loads(rich[1].data)
    text["a field of the future"] = [1]
    yield "newer-fields", build(changed(rich, Kind.CAPTURE, data=json.dumps(text).encode()))


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
                yield f"cut-{at:04}", whole[:at], "archive-truncated"


def flips(whole: bytes) -> Iterator[tuple[int, int]]:
    """Offset and mask for every byte of header, table and footer: one bit at either end changed, and all."""
    footer = len(whole) - FOOTER.size
    table_at = int.from_bytes(whole[footer : footer + 8], "little")
    for mask in (1, 0x80, 0xFF):
        for at in (*range(HEADER.size), *range(table_at, len(whole))):
            yield at, mask


def flipped(whole: bytes, at: int, mask: int) -> bytes:
    """The archive with one byte changed."""
    return whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :]


def flip_runs(whole: bytes) -> list[list[int | str]]:
    """All flips with the code of each, those of neighbouring bytes together: first, last, mask, code."""
    runs: list[list[Any]] = []
    for at, mask in flips(whole):
        try:
            minireader.read(flipped(whole, at, mask))
            raise AssertionError(f"the byte {at} may be changed by {mask:#x}")
        except minireader.Refused as refused:
            code = refused.code
        if runs and runs[-1][1:] == [at - 1, mask, code]:
            runs[-1][1] = at
        else:
            runs.append([at, at, mask, code])
    return runs


def invalid_cases() -> Iterator[tuple[str, bytes, str]]:
    """Everything that a reader must refuse, with the code."""
    rich = pieces_of(rich_capture())
    assert all(piece.flags == CRITICAL or piece.kind in (Kind.SUMMARY, Kind.TIMELINE) for piece in rich)
    yield from broken_containers(rich)
    yield from broken_sections(rich)
    yield from broken_contents(rich)
    yield from broken_proofs(proven_pieces())
    yield from broken_prefetch(prefetch_pieces())
    yield from broken_dependencies(ordered_pieces())
    yield from cuts(build(pieces_of(small_capture())))


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
    (FOLDER / "valid" / "thin.library").write_bytes(library_file())
    small = build(pieces_of(small_capture()))
    runs = ",\n".join(json.dumps(run) for run in flip_runs(small))
    text = f'{{"base": "valid/small.fdry", "flips": [\n{runs}\n]}}\n'
    (FOLDER / "invalid" / "flips.json").write_text(text, encoding="utf-8")
    for old in (FOLDER / "invalid").glob("*.fdry"):
        old.unlink()
    codes = {}
    for name, data, code in invalid_cases():
        (FOLDER / "invalid" / f"{name}.fdry").write_bytes(data)
        codes[name] = code
    (FOLDER / "invalid" / "codes.json").write_text(as_text(codes), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("pass `--update` to replace the vectors; the diff of their JSON is to be looked at")
    main()
