"""Measure how much of a torch decode job's start a restore saves, and that what it gives back is the same.

    python benchmarks/decode_job.py [--restores 5]

Runs the reference decode job (28 layers, 35 batch sizes) plainly, under `foundry capture`, and under `foundry restore`
several times, each in a process of its own (the first restore to the job's end, the others until it is ready), and
writes `benchmarks/results/decode-job-<machine class>.json`.

The job's attention comes from cuDNN, whose results differ in the last bits from call to call, in plain torch too. So a
second, steady job without cuDNN's attention shows equality of all bits; of the job as it is, only the share of other
tokens is compared with plain torch's own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
JOB = ROOT / "tests" / "gpu" / "decode_job_foundry.py"
sys.path.insert(0, str(JOB.parent))

from scenarios import FOUNDRY, run, strange, strangers, unequal  # noqa: E402

READY_LIMIT, ARCHIVE_LIMIT, REPLAY_LIMIT = 0.30, 40e6, 1.02
PREPARATION = ("image_check", "ready")
"""Timings of the hook that make up getting modules and graphs ready: the check of the image, and the wall time from the
first work of the background threads until the last graph was built. The other timings are sums over threads."""


def machine() -> dict[str, Any]:
    """Say what the figures were measured on; nothing that names the machine itself."""
    facts: dict[str, Any] = {
        "cores": os.cpu_count(), "architecture": platform.machine(), "python": platform.python_version(),
        "kernel": platform.release().split("-")[0], "libc": " ".join(platform.libc_ver()),
    }  # fmt: skip
    for package in ("foundry-graphs", "torch", "numpy", "zstandard"):
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = None
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        lines = subprocess.run(query, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
        facts["gpu"], facts["driver"], facts["gpu_memory"] = (part.strip() for part in lines[0].split(","))
        facts["gpus"] = len(lines)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        facts["gpu"] = f"unknown: {type(error).__name__}"
    return facts


def machine_class(facts: dict[str, Any]) -> str:
    """Return a name for the kind of machine, for a file name."""
    return re.sub(r"[^a-z0-9]+", "-", str(facts["gpu"]).lower()).strip("-")


def spread(values: list[float]) -> dict[str, Any]:
    """Return the median of several measurements, and how far they lie apart."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "n": len(values)}


def measure(folder: Path, restores: int) -> dict[str, Any]:
    """Run the job in all ways. `figures.json` in the folder is rewritten after each run."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "job.fdry"
    figures: dict[str, Any] = {
        "question": "how much of a torch decode job's start does a restore save, and is what it gives back the same",
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "command": "python benchmarks/decode_job.py",
        "restores": [],
    }

    def keep(name: str, program: list[Any]) -> dict[str, Any]:
        out = folder / f"{name}.json"
        begin = time.perf_counter()
        run(folder, name, [*program, "--out", out], timeout=200)
        result: dict[str, Any] = json.loads(out.read_text())
        result["wall_seconds"] = time.perf_counter() - begin
        return result

    def save() -> None:
        (folder / "figures.json").write_text(json.dumps(figures, indent=1))

    program = [sys.executable, JOB]
    figures["plain"] = keep("plain", [*program, "--eager"])
    save()
    figures["capture"] = keep("capture", [*FOUNDRY, "capture", "-f", "-o", archive, "--", *program])
    figures["archive_bytes"] = archive.stat().st_size
    save()
    restore = [*FOUNDRY, "restore", "--allow", "mismatch-arguments"]  # it writes to another file
    for index in range(restores):
        report = folder / f"report-{index}.json"
        more = ["--start-only"] if index else ["--versus"]
        command = [*restore, archive, "--report", report, "--", *program, *more]
        result = keep(f"restore-{index}", command)
        result["report"] = json.loads(report.read_text())
        figures["restores"].append(result)
        save()
    steady = [*program, "--steady", "--replays", "5"]
    archive = folder / "steady.fdry"
    figures["steady"] = {
        "plain": keep("steady-plain", [*steady, "--eager"]),
        "capture": keep("steady-capture", [*FOUNDRY, "capture", "-f", "-o", archive, "--", *steady]),
        "restore": keep("steady-restore", [*restore, archive, "--", *steady]),
    }
    save()
    return figures


def compared(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return (name, result, plain result to compare with) of every run."""
    plain, steady = figures["plain"], figures["steady"]
    runs = [("plain", plain, plain), ("capture", figures["capture"], plain)]
    runs += [(f"restore {index}", result, plain) for index, result in enumerate(finished_jobs(figures))]
    return runs + [(f"steady {name}", result, steady["plain"]) for name, result in steady.items()]


def finished_jobs(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the restores that ran to the job's end."""
    return [result for result in figures["restores"] if "digests" in result]


def short(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures that answer the question."""
    restores = figures["restores"]
    processes = [result["report"]["processes"][0] for result in restores]
    plain, capture = figures["plain"], figures["capture"]
    whole = finished_jobs(figures)
    versus = {size: entry for result in whole for size, entry in result.get("versus", {}).items()}
    ratios = [entry["ratio"] for entry in versus.values()]
    names = sorted({name for process in processes for name in process["seconds"]})
    return {
        "machine": figures["machine"],
        "date": figures["date"],
        "graphs": len(plain["digests"]),
        "archive_bytes": figures["archive_bytes"],
        "plain_graphs_seconds": plain["phases"]["graphs"],
        "capture_graphs_seconds": capture["phases"]["graphs"],
        "restore_prepared_seconds": spread(
            [sum(process["seconds"].get(name, 0) for name in PREPARATION) for process in processes]
        ),
        "restore_waited_seconds": spread([result["totals"]["graphs_blocked_ns"] / 1e9 for result in restores]),
        "hook_seconds": {name: spread([process["seconds"].get(name, 0) for process in processes]) for name in names},
        "ready_seconds": {
            "plain": plain["ready_seconds"],
            "restore": spread([result["ready_seconds"] for result in restores]),
        },
        "first_replay_ms": spread([statistics.mean(result["first_replay_ms"].values()) for result in whole]),
        "replay_ratio_same_process": {"median": statistics.median(ratios), "most": max(ratios)} if ratios else None,
        "replay_ms": {
            size: {"captured": entry["captured_ms"], "restored": entry["given_ms"]} for size, entry in versus.items()
        },
        "steady_job_bit_equal": not any(
            unequal(result, reference) for _, result, reference in compared(figures) if reference["steady"]
        ),
        "share_of_other_tokens": {
            "plain_against_itself": strangers(plain["eager_digests_again"], plain),
            "restored": spread([strangers(result["digests"], plain) for result in whole]),
        },
        "warm_ups_and_captures_run": sum(
            result["totals"]["warm_ups_run"] + result["totals"]["captures_run"] for result in restores
        ),
    }


def failures(figures: dict[str, Any]) -> list[str]:
    """Say which limits the figures miss, and what is not equal."""
    found = []
    figure = short(figures)
    for name, result, reference in compared(figures):
        wrong = unequal(result, reference) if reference["steady"] else []
        if wrong:
            found.append(f"{name}: differs from plain eager torch at sizes {', '.join(wrong)}")
        elif strange(result, reference):
            found.append(f"{name}: other tokens than plain eager torch's")
    steady = figures["steady"]["plain"]
    if steady["eager_digests"] != steady["eager_digests_again"]:
        found.append("plain torch disagrees with itself in the steady job")
    for index, result in enumerate([*figures["restores"], figures["steady"]["restore"]]):
        if result["restored"] != figure["graphs"]:
            found.append(f"restore {index}: {result['restored']} of {figure['graphs']} graphs: {result['reasons']}")
    if figure["warm_ups_and_captures_run"]:
        found.append(f"{figure['warm_ups_and_captures_run']} warm-ups and captures ran in restored processes")
    waited = figure["restore_waited_seconds"]["median"]
    if waited > READY_LIMIT:
        found.append(f"the program waited {waited:.3f} s for modules and graphs, the limit is {READY_LIMIT} s")
    if figure["archive_bytes"] > ARCHIVE_LIMIT:
        found.append(
            f"the archive has {figure['archive_bytes'] / 1e6:.1f} MB, the limit is {ARCHIVE_LIMIT / 1e6:.0f} MB"
        )
    for table in (result["versus"] for result in figures["restores"] if "versus" in result):
        slow = [f"{size}: {entry['ratio']:.3f}" for size, entry in table.items() if entry["ratio"] > REPLAY_LIMIT]
        if slow:
            found.append(f"replays slower than a captured graph's in the same process: {', '.join(slow)}")
    return found


def write(figures: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write the short figures under the name of the machine's class."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"decode-job-{machine_class(figures['machine'])}.json"
    path.write_text(json.dumps({"command": figures["command"], **short(figures)}, indent=1) + "\n")
    return path


def main() -> int:
    """Measure, write, and say what is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--restores", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where logs and archive go; a temporary folder if left out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        figures = measure((arguments.folder or Path(temporary)).resolve(), arguments.restores)
        path = write(figures)
        print(json.dumps({key: value for key, value in short(figures).items() if key != "replay_ms"}, indent=1))
        print(f"written to {path}")
        problems = failures(figures)
    for problem in problems:
        print(f"missed: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
