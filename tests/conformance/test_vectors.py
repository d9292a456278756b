"""Both readers, ours and the small one, on all vectors and on everything that can be derived from them."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foundry import archive
from foundry.archive import layout
from foundry.archive.heads import encode_head, head_of
from foundry.archive.process_text import encode_process
from foundry.archive.timeline import encode_timeline
from foundry.binary.fatbin import unpack
from foundry.compat.library_files import build_id
from foundry.errors import ArchiveError, ArchiveVersionError
from foundry.model import Capture, LibraryPlace, Process
from foundry.model.views import GraphView

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "format_spec"), str(Path(__file__).parent)]

import make_vectors  # noqa: E402
import minireader  # noqa: E402

VALID = sorted((make_vectors.FOLDER / "valid").glob("*.fdry"))
INVALID = sorted((make_vectors.FOLDER / "invalid").glob("*.fdry"))
CODES = json.loads((make_vectors.FOLDER / "invalid" / "codes.json").read_text())


def our_code(path: Path) -> str:
    try:
        archive.read(path)
    except ArchiveError as error:
        return error.code
    return "accepted"


def their_code(data: bytes) -> str:
    try:
        minireader.read(data)
    except minireader.Refused as error:
        return str(error.code)
    return "accepted"


def from_library(place: LibraryPlace) -> bytes:
    data = (make_vectors.FOLDER / "valid" / "thin.library").read_bytes()[place.offset : place.offset + place.size]
    return unpack(data, place.architecture) if place.architecture else data


def rows(table: Any) -> list[dict[str, int]]:
    return [{name: int(row[name]) for name in table.dtype.names} for row in table]


def bodies_json(process: Process) -> list[dict[str, Any]]:
    view, found = GraphView(process), []
    for body, group in enumerate(process.bodies.tolist()):
        nodes = []
        for row, node in zip(rows(process.groups[group].nodes), view.nodes(body), strict=True):
            if node.parameters is not None and node.grid and node.block:
                sizes = dict(zip(("grid_x", "grid_y", "grid_z"), node.grid, strict=True))
                sizes |= dict(zip(("block_x", "block_y", "block_z"), node.block, strict=True))
                row |= sizes | {"shared_bytes": node.shared_bytes, "parameters": node.parameters.hex()}
            row |= node.memset or {}
            row |= {"copy": node.copy.hex()} if node.copy is not None else {}
            row |= {"body": node.child} if node.child is not None else {}
            row |= {"event": node.event} if node.event is not None else {}
            nodes.append(row)
        found.append({"group": group, "nodes": nodes})
    return found


def relocations_json(process: Process) -> dict[str, Any]:
    proof = process.proof
    if proof is None:
        return {}
    places = {
        name: [list(place) for place in getattr(proof, name).tolist()] for name in ("parameters", "copies", "texts")
    }
    lists = {"graphs": proof.graphs.tolist(), "memsets": proof.memsets.tolist(), "noise": proof.noise}
    return {"relocations": lists | places}


def dependencies_json(process: Process) -> dict[str, Any]:
    found = []
    for number, group in enumerate(process.groups):
        plain = type(group)(group.nodes, group.edges[np.argsort(group.edges["end"], kind="stable")]).dependencies
        found += [
            {"group": number, "node": node, "starts": starts}
            for node, starts in group.dependencies.items()
            if starts != plain[node]
        ]
    return {"dependencies": found} if found else {}


def prefetch_json(capture: Capture) -> dict[str, Any]:
    files = [
        {"path": file.path, "size": file.size, "ranges": [number for pair in file.ranges for number in pair]}
        for file in capture.start_files
    ]
    return {"prefetch": files} if files else {}


def as_json(capture: Capture, path: Path) -> dict[str, Any]:
    """What the small reader says of an archive, from what ours says."""
    brief = archive.summary(path)
    names = {kind.name.lower(): int(kind) for kind in layout.Kind}
    return {
        "version": f"{brief.major}.{brief.minor}",
        "capture_id": brief.capture_id,
        "sections": [
            {
                "kind": names.get(section.kind) or int(section.kind.removeprefix("#")),
                "process": layout.WHOLE if section.process is None else section.process,
                "raw": section.raw,
                "critical": section.critical,
            }
            for section in brief.sections
        ],
        "capture": encode_head(head_of(capture)),
        "processes": [
            encode_process(process)
            | {
                "allocations": rows(process.allocations),
                "groups": [{"nodes": rows(group.nodes), "edges": rows(group.edges)} for group in process.groups],
                "bodies": bodies_json(process),
            }
            | relocations_json(process)
            | dependencies_json(process)
            | times
            for process, times in zip(capture.processes, encode_timeline(capture)["processes"], strict=True)
        ],
        **prefetch_json(capture),
    }


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_the_small_reader_says_what_is_kept(path: Path) -> None:
    assert minireader.read(path.read_bytes()) == json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_our_reader_says_the_same(path: Path) -> None:
    kept = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    for extra in [key for key in kept["capture"] if "future" in key]:
        del kept["capture"][extra]
    assert json.loads(json.dumps(as_json(archive.read(path, from_library), path))) == kept


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_both_readers_refuse_with_the_code(path: Path) -> None:
    assert (our_code(path), their_code(path.read_bytes())) == (CODES[path.stem], CODES[path.stem])


def test_the_script_makes_what_is_kept() -> None:
    made = {name: minireader.read(data) for name, data in make_vectors.valid_cases()}
    assert made == {path.stem: json.loads(path.with_suffix(".json").read_text(encoding="utf-8")) for path in VALID}
    assert {name: code for name, _, code in make_vectors.invalid_cases()} == CODES
    assert {path.stem for path in INVALID} == set(CODES)


def test_the_cuts_are_kept_at_every_boundary_and_a_byte_to_each_side() -> None:
    whole = (make_vectors.FOLDER / "valid" / "small.fdry").read_bytes()
    with archive.open_archive(make_vectors.FOLDER / "valid" / "small.fdry") as opened:
        ends = {section.offset + section.stored for section in opened.sections}
    kept = {path.stem: path.read_bytes() for path in INVALID if re.fullmatch(r"cut-\d+", path.stem)}
    assert {end + side for end in ends for side in (-1, 0, 1)} <= {len(data) for data in kept.values()}
    assert all(whole.startswith(data) and len(data) < len(whole) for data in kept.values())


def test_both_readers_refuse_every_changed_byte_of_header_table_and_footer(tmp_path: Path) -> None:
    kept = json.loads((make_vectors.FOLDER / "invalid" / "flips.json").read_text(encoding="utf-8"))
    whole = (make_vectors.FOLDER / kept["base"].removeprefix("v1/")).read_bytes()
    path = tmp_path / "x.fdry"
    done = set()
    for first, last, mask, code in kept["flips"]:
        for at in range(first, last + 1):
            data = make_vectors.flipped(whole, at, mask)
            path.write_bytes(data)
            assert (at, mask, our_code(path), their_code(data)) == (at, mask, code, code)
            done.add((at, mask))
    assert done == set(make_vectors.flips(whole))


def test_a_thin_archive_is_read_but_for_its_blobs_outside() -> None:
    path = make_vectors.FOLDER / "valid" / "thin.fdry"
    library = path.with_suffix(".library")
    with archive.open_archive(path) as opened:
        opened.check_sections()
        assert opened.summary().outside == 3
        assert [process.role for process in opened.processes()] == list(opened.roles)
        for index, entry in enumerate(opened.head.blobs):
            if entry.library is None:
                assert hashlib.sha256(opened.blob(index)).digest() == entry.sha256
                continue
            with pytest.raises(ArchiveError) as caught:
                opened.blob(index)
            assert caught.value.code == "blob-outside"
            assert entry.library.build_id == build_id(library)
            assert hashlib.sha256(from_library(entry.library)).digest() == entry.sha256
    assert our_code(path) == "blob-outside"


def test_a_newer_major_is_told_with_both_versions() -> None:
    with pytest.raises(ArchiveVersionError, match=r"format 2\.0, this Foundry reads up to 1\.0") as caught:
        archive.read(make_vectors.FOLDER / "invalid" / "newer-major.fdry")
    assert caught.value.exit_code == 4
