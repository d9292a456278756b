"""Both readers, ours and the small one, on all vectors and on everything that can be derived from them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foundry import archive
from foundry.archive import layout
from foundry.archive.process_text import encode_process
from foundry.archive.timeline import encode_timeline
from foundry.archive.writer import _capture_text
from foundry.errors import ArchiveError, ArchiveVersionError
from foundry.model import Capture, NodeType, Process
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
        "capture": _capture_text(capture),
        "processes": [
            encode_process(process)
            | {
                "allocations": rows(process.allocations),
                "groups": [{"nodes": rows(group.nodes), "edges": rows(group.edges)} for group in process.groups],
                "bodies": bodies_json(process),
            }
            | times
            for process, times in zip(capture.processes, encode_timeline(capture)["processes"], strict=True)
        ],
    }


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_the_small_reader_says_what_is_kept(path: Path) -> None:
    assert minireader.read(path.read_bytes()) == json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_our_reader_says_the_same(path: Path) -> None:
    kept = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    for extra in [key for key in kept["capture"] if "future" in key]:
        del kept["capture"][extra]
    assert json.loads(json.dumps(as_json(archive.read(path), path))) == kept


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_both_readers_refuse_with_the_code(path: Path) -> None:
    assert (our_code(path), their_code(path.read_bytes())) == (CODES[path.stem], CODES[path.stem])


def test_the_script_makes_what_is_kept() -> None:
    made = {name: minireader.read(data) for name, data in make_vectors.valid_cases()}
    assert made == {path.stem: json.loads(path.with_suffix(".json").read_text(encoding="utf-8")) for path in VALID}
    assert {name: code for name, _, code in make_vectors.invalid_cases()} == CODES
    assert {path.stem for path in INVALID} == set(CODES)


def test_a_cut_at_any_boundary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.fdry"
    for name, data, code in make_vectors.cuts((make_vectors.FOLDER / "valid" / "rich.fdry").read_bytes()):
        path.write_bytes(data)
        assert (name, our_code(path), their_code(data)) == (name, code, code)


def test_no_changed_byte_of_header_table_or_footer_passes(tmp_path: Path) -> None:
    path = tmp_path / "x.fdry"
    for name, data in make_vectors.flips((make_vectors.FOLDER / "valid" / "rich.fdry").read_bytes()):
        path.write_bytes(data)
        ours, theirs = our_code(path), their_code(data)
        assert ours == theirs != "accepted", name


def test_a_newer_major_is_told_with_both_versions() -> None:
    with pytest.raises(ArchiveVersionError, match=r"format 2\.0, this Foundry reads up to 1\.0") as caught:
        archive.read(make_vectors.FOLDER / "invalid" / "newer-major.fdry")
    assert caught.value.exit_code == 4


def test_the_registry_lists_every_number_and_code() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    from foundry import findings

    codes = {
        value for name, value in vars(findings).items() if name.isupper() and isinstance(value, str) and "-" in value
    }
    assert {code for code in codes if f"`{code}`" not in text} == set()
    for kind in layout.Kind:
        assert f"| {int(kind)} | `{kind.name.lower()}` |" in text
    for node in NodeType:
        assert f"| {int(node)} | `{node.name.lower()}` |" in text


def test_the_registry_lists_every_code_of_a_command() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    sources = [
        path.read_text(encoding="utf-8")
        for folder in ("compat", "session", "store", "launch")
        for path in (ROOT / "foundry" / folder).rglob("*.py")
    ]
    codes = {code for source in sources for code in re.findall(r'"(mismatch-[a-z-]+)"|code="([a-z-]+)"', source)}
    found = {one or other for one, other in codes}
    assert found >= {"mismatch-gpu-model", "image-not-written"}
    assert {code for code in found if f"| `{code}` |" not in text} == set()


def test_the_registry_lists_every_code_of_the_hook() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "foundry" / "native").rglob("*.cpp")]
    codes = {code for source in sources for code in re.findall(r'\bfinding(?:_once)?\("([a-z-]+)"', source)}
    assert codes and {code for code in codes if f"`{code}`" not in text} == set()


def test_the_spec_gives_the_numbers_of_the_code() -> None:
    text = (ROOT / "format_spec" / "archive.md").read_text(encoding="utf-8")
    assert layout.MAGIC.hex(" ").upper() in text and layout.END_MAGIC.hex(" ").upper() in text
    sizes = (layout.HEADER.size, layout.ENTRY.size, layout.FOOTER.size)
    assert sizes == (32, 72, 96)
    assert all(f"{size} bytes" in text for size in sizes)
    assert np.dtype("<u4").itemsize == 4
