"""Measure how fast the archive's tools are, and how much memory they take, on 256 graphs of about 1,000 nodes each.

    python benchmarks/tool_speed.py [--runs 7] [--keep FOLDER]

The capture is made up (`tests/helpers/synthetic.py`): graphs like those of a decode job, parameters with pointers and
noise, images about as compressible as machine code, but no ELF files. Each figure is of a whole process, from start to
exit, with its files in the page cache. `diff` compares with a second capture whose stack and heap words stand
elsewhere, as they do in a second run.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

FOUNDRY = [sys.executable, "-m", "foundry"]
SHAPE = {"graphs": 256, "layers": 28, "kernels_per_layer": 36}
RANKS = 4
"""How many processes the third capture has, each with the graphs of the first."""
SHIFT = 0x10000
"""By how much stack and heap words stand elsewhere in the second capture."""


@dataclass(frozen=True)
class Tool:
    """A command, what it must not take longer than, and the exit codes that it may end with."""

    name: str
    arguments: Sequence[str]
    codes: tuple[int, ...] = (0,)
    most_process_seconds: float | None = None
    most_seconds: float | None = None
    least_raw_rate: float | None = None
    """Raw bytes a second, in the time beyond what a process takes that does nothing."""


@dataclass(frozen=True)
class Run:
    """One run: wall time, time on all cores, greatest memory."""

    seconds: float
    process_seconds: float
    peak_bytes: int


def run(tool: Tool, folder: Path) -> Run:
    """Run a tool once."""
    begin = time.perf_counter()
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen([*FOUNDRY, *tool.arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in tool.codes:
        sys.exit(
            f"`foundry {' '.join(tool.arguments)}` ended with {process.returncode}: {(folder / 'said').read_text()}"
        )
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss << 10)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Give the median and the ends."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "n": len(values)}


def make(folder: Path) -> dict[str, Any]:
    """Make the spool and both archives; tell how large they are. Takes much memory, so it has a process of its own."""
    from helpers.synthetic import Shape, make_spool

    from foundry import archive

    shape = Shape(**SHAPE)
    make_spool(folder / "spool", shape)
    subprocess.run([*FOUNDRY, "pack", "spool", "-o", "one.fdry", "--keep", "-q"], cwd=folder, check=True)
    capture = archive.read(folder / "one.fdry")
    process = capture.processes[0]
    words = process.parameters.view("<u8").copy()
    noise = (words >= 0x550000000000) & (words < 0x800000000000)
    words[noise] += SHIFT
    moved = replace(process, parameters=words.view("u1"))
    archive.write(replace(capture, processes=(moved,)), folder / "two.fdry", force=True)
    ranks = tuple(replace(process, role=f"rank-{number}") for number in range(RANKS))
    archive.write(replace(capture, processes=ranks), folder / "ranks.fdry", force=True)
    brief = archive.summary(folder / "one.fdry")
    return {
        **asdict(shape),
        "nodes": sum(process.nodes for process in brief.processes),
        "archive_bytes": brief.file_size,
        "raw_bytes": brief.raw_size,
        "ranks_raw_bytes": archive.summary(folder / "ranks.fdry").raw_size,
        "largest_section_bytes": max(section.raw for section in brief.sections),
        "spool_bytes": sum(path.stat().st_size for path in (folder / "spool").rglob("*") if path.is_file()),
    }


def tools() -> list[Tool]:
    """List what is measured, with the project's goals."""
    return [
        Tool("inspect", ["inspect", "one.fdry"], most_process_seconds=0.4),
        Tool("inspect --json", ["inspect", "one.fdry", "--json"]),
        Tool("verify --quick", ["verify", "--quick", "one.fdry"], (0, 3)),
        Tool("verify", ["verify", "one.fdry"], (0, 3), least_raw_rate=1e9),
        Tool("verify, 4 processes", ["verify", "ranks.fdry"], (0, 3), least_raw_rate=1e9),
        Tool("verify --deep", ["verify", "--deep", "one.fdry"], (0, 1, 3)),
        Tool("diff", ["diff", "one.fdry", "two.fdry"], (0, 1)),
        Tool("inspect --html", ["inspect", "one.fdry", "--html", "report.html", "--force"]),
        Tool("pack", ["pack", "spool", "-o", "again.fdry", "--force", "--keep"], most_seconds=5.0),
    ]


def measured(tool: Tool, folder: Path, runs: int, raw: int, start: float) -> dict[str, Any]:
    """Run a tool several times, once before for the caches, and hold it against its goals.

    `start` is how long a process takes that does nothing.
    """
    run(tool, folder)
    found = [run(tool, folder) for _ in range(runs)]
    seconds = spread([one.seconds for one in found])
    process_seconds = spread([one.process_seconds for one in found])
    result: dict[str, Any] = {
        "command": " ".join(["foundry", *tool.arguments]),
        "seconds": seconds,
        "process_seconds": process_seconds,
        "peak_bytes": max(one.peak_bytes for one in found),
    }
    goals = []
    if tool.least_raw_rate:
        result["raw_bytes_per_second"] = raw / (seconds["median"] - start)
        result["raw_bytes_per_second_with_start"] = raw / seconds["median"]
        goals.append(result["raw_bytes_per_second"] >= tool.least_raw_rate)
    if tool.most_process_seconds:
        goals.append(process_seconds["median"] <= tool.most_process_seconds)
    if tool.most_seconds:
        goals.append(seconds["median"] <= tool.most_seconds)
    return result | ({"goal_met": all(goals)} if goals else {})


def machine() -> dict[str, Any]:
    """Describe what it was measured on."""
    names = ("foundry-graphs", "numpy", "zstandard", "typer", "rich")
    versions = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "source checkout"
    model = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "architecture": platform.machine(),
        "processor": model[0] if model else "",
        "python": platform.python_version(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        **versions,
    }


def machine_class() -> str:
    """Name the class of machine, as results are called by it."""
    return f"{len(os.sched_getaffinity(0))}-cores-{platform.machine().replace('_', '-')}"


def main() -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="write the figures into this folder")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.make:
        json.dump(make(wanted.make), sys.stdout)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load = os.getloadavg()[0]
        made = subprocess.run([sys.executable, __file__, "--make", name], stdout=subprocess.PIPE, check=True)
        capture = json.loads(made.stdout)
        nothing = measured(Tool("nothing", ["--version"]), folder, wanted.runs, 0, 0.0)
        found = {"nothing": nothing}
        for tool in tools():
            start = nothing["seconds"]["median"]
            raw = capture["ranks_raw_bytes" if "ranks.fdry" in tool.arguments else "raw_bytes"]
            found[tool.name] = measured(tool, folder, wanted.runs, raw, start)
    figures = {
        "command": " ".join(["python", "benchmarks/tool_speed.py", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "load_before": load,
        "capture": capture,
        "tools": found,
    }
    text = json.dumps(figures, indent=1) + "\n"
    sys.stdout.write(text)
    if wanted.keep:
        (wanted.keep / f"tool-speed-{machine_class()}.json").write_text(text)
    return 0 if all(tool.get("goal_met", True) for tool in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
