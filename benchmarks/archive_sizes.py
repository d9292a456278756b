"""Tell where the bytes of archives are: raw and stored, for each kind of section and for each graph.

    python benchmarks/archive_sizes.py [NAME=ARCHIVE ...] [--beyond NAME:NAME] [--keep]

Prints tables in Markdown for benchmarks/README.md on standard output. `--beyond SMALL:LARGE` tells what each further
graph of LARGE costs, where LARGE has the graphs of SMALL and more. Without archives they are made, on a GPU, by
`tests/gpu/archive_tools.py`, which holds the tools against them as well.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuring.figures import BYTES, figure
from measuring.question import Answer, Asked, Question
from measuring.results import ROOT

from foundry import archive

COLUMNS = ("capture", "graphs", "nodes", "groups", "raw", "stored", "stored per graph", "without images")
BLOBS = "blobs"
STEP, MADE, BEYOND = "archive_tools", ("job", "job-99", "steady", "small", "thin"), "job:job-99"


def sizes(path: Path) -> dict[str, Any]:
    """Give the figures of one archive."""
    brief = archive.summary(path)
    kinds: dict[str, dict[str, int]] = {}
    for section in brief.sections:
        kind = kinds.setdefault(section.kind, {"sections": 0, "raw": 0, "stored": 0})
        kind["sections"] += 1
        kind["raw"] += section.raw
        kind["stored"] += section.stored
    graphs = brief.graphs
    stored_blobs = kinds.get(BLOBS, {"stored": 0})["stored"]
    with archive.open_archive(path) as opened:
        outside = sum(entry.size for entry in opened.head.blobs if entry.library is not None)
        blobs = len(opened.head.blobs)
    return {
        "capture_id": brief.capture_id,
        "simulated": any(process.simulated for process in brief.processes),
        "devices": sorted({device.name for process in brief.processes for device in process.devices}),
        "processes": len(brief.processes),
        "graphs": graphs,
        "nodes": sum(process.nodes for process in brief.processes),
        "groups": sum(process.groups for process in brief.processes),
        "kernels": sum(process.kernels for process in brief.processes),
        "images": sum(process.images for process in brief.processes),
        "blobs": blobs,
        "bytes_in_library_files": outside,
        "raw": brief.raw_size,
        "stored": brief.file_size,
        "stored_without_blobs": brief.file_size - stored_blobs,
        "stored_per_graph": brief.file_size / graphs if graphs else None,
        "stored_per_graph_without_blobs": (brief.file_size - stored_blobs) / graphs if graphs else None,
        "sections": kinds,
    }


def amount(value: float | None) -> str:
    """Write a number of bytes as people do."""
    if value is None:
        return "-"
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value < 1000 * size else f"{value / size:,.0f} {unit}"
    return f"{value:.0f} B"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [columns, ["---", *["--:"] * (len(columns) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def overview(found: dict[str, dict[str, Any]]) -> str:
    """Write the table of whole archives, a row each."""
    rows = []
    for name, one in found.items():
        counts = [f"{one[key]:,}" for key in ("graphs", "nodes", "groups")]
        bytes_of = [one[key] for key in ("raw", "stored", "stored_per_graph", "stored_without_blobs")]
        rows.append([name, *counts, *map(amount, bytes_of)])
    return table(COLUMNS, rows)


def by_section(found: dict[str, dict[str, Any]]) -> str:
    """Write the table of kinds of sections: raw and stored bytes in each archive."""
    kinds = list(dict.fromkeys(kind for one in found.values() for kind in one["sections"]))
    rows = []
    for kind in kinds:
        cells = []
        for one in found.values():
            section = one["sections"].get(kind)
            cells.append(f"{amount(section['raw'])} / {amount(section['stored'])}" if section else "-")
        rows.append([kind, *cells])
    return table(["section, raw / stored", *found], rows)


def further(found: dict[str, dict[str, Any]], names: str) -> dict[str, Any]:
    """Give what each further graph costs, and what of it is images."""
    small, _, large = names.partition(":")
    one, more = found[small], found[large]
    graphs = more["graphs"] - one["graphs"]
    if graphs <= 0:
        sys.exit(f"`{large}` has no more graphs than `{small}`")
    return {
        "graphs": graphs,
        "stored_per_graph": (more["stored"] - one["stored"]) / graphs,
        "stored_per_graph_without_blobs": (more["stored_without_blobs"] - one["stored_without_blobs"]) / graphs,
    }


def made(folder: Path) -> dict[str, Path]:
    """Capture the decode job in several ways."""
    script = ROOT / "tests" / "gpu" / "run_all.py"
    subprocess.run([sys.executable, str(script), str(folder), STEP, "--keep-archives"], check=True)
    return {name: folder / STEP / f"{name}.fdry" for name in MADE}


def answer(asked: Asked) -> Answer:
    """Print the tables and give the figures."""
    options = asked.options
    places = {name: Path(path) for name, path in (item.partition("=")[::2] for item in options.archives)}
    pairs = options.beyond if places else [BEYOND]
    found = {name: sizes(path) for name, path in (places or made(asked.folder)).items()}
    beyond = {names: further(found, names) for names in pairs}
    print(overview(found))
    print(by_section(found), end="")
    for names, cost in beyond.items():
        each, graphs = cost["stored_per_graph"], cost["stored_per_graph_without_blobs"]
        print(f"\n{names}: {cost['graphs']} further graphs, {amount(each)} each, {amount(graphs)} without images")
    figures = {name: figure([one["stored"]], BYTES) for name, one in found.items()}
    about = {name: one["graphs"] for name, one in found.items()}
    return Answer(figures, about, {"archives": found, "further": beyond})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say which archives, and which are compared."""
    parser.add_argument("archives", nargs="*", metavar="NAME=ARCHIVE")
    parser.add_argument("--beyond", action="append", default=[], metavar="SMALL:LARGE")
    parser.set_defaults(sim=False)


QUESTION = Question("archive-sizes", "where are the bytes of an archive", answer, 1, add_options)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
