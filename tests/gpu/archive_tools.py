"""The archive tools on archives of a real GPU: sizes, `diff` of two captures, `verify` down to the device.

Needs torch. The archives stay in the folder, for `benchmarks/archive_sizes.py`; `figures.json` has what was found.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scenarios import FOUNDRY, HERE, run

JOB = HERE / "decode_job_foundry.py"
FIRST_SIZES = [1, 2, 4, *range(8, 257, 8)]
FURTHER_SIZES = [3, 5, *range(9, 254, 4)]
ARCHIVE_LIMIT, FURTHER_LIMIT = 8_000_000, 30_000
SMALL = ["--layers", 2, "--sizes", "1,8,64"]
CAPTURES: dict[str, list[Any]] = {
    "job": [],
    "job-again": [],
    "job-99": ["--sizes", ",".join(map(str, sorted({*FIRST_SIZES, *FURTHER_SIZES})))],
    "steady": ["--steady"],
    "steady-again": ["--steady"],
    "small": SMALL,
    "thin": SMALL,
}


def capture(folder: Path) -> dict[str, int]:
    """Capture the decode job in several ways; return the bytes of each archive."""
    sizes = {}
    for name, more in CAPTURES.items():
        archive = folder / f"{name}.fdry"
        program = [sys.executable, JOB, "--out", folder / "result.json", "--start-only", *more]
        options = ["--thin"] if name == "thin" else []
        run(folder, f"capture-{name}", [*FOUNDRY, "capture", *options, "-f", "-o", archive, "--", *program])
        sizes[name] = archive.stat().st_size
    return sizes


def tool(folder: Path, name: str, *arguments: Any, timeout: float = 240) -> dict[str, Any]:
    """Run a command of foundry with `--json`; return its document with its exit status and seconds."""
    command = [*FOUNDRY, *map(str, arguments), "--json"]
    begin = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=folder, check=False)
    seconds = time.monotonic() - begin
    (folder / f"{name}.log").write_text(f"$ {' '.join(command)}\n{ended.stderr}")
    (folder / f"{name}.out").write_text(ended.stdout)
    print(f"  {name}: exit {ended.returncode} after {seconds:.1f} s", flush=True)
    assert "Traceback" not in ended.stderr, ended.stderr
    return {"exit": ended.returncode, "seconds": seconds, "document": json.loads(ended.stdout)}


def restore_thin(folder: Path) -> dict[str, int]:
    """Restore from the archive without the kernels that lie in library files; return graphs asked for and restored."""
    report = folder / "thin-report.json"
    program = [sys.executable, JOB, "--out", folder / "result.json", "--start-only"]
    run(folder, "restore-thin", [*FOUNDRY, "restore", "thin.fdry", "--report", report, "--", *program, *SMALL])
    found = json.loads(report.read_text())
    return {"graphs": found["graphs_in_archive"], "restored": found["graphs_restored"]}


def archive_tools(folder: Path) -> dict[str, Any]:
    """Capture, then hold every tool against the captures."""
    figures: dict[str, Any] = {"sizes": capture(folder)}

    def save() -> None:
        (folder / "figures.json").write_text(json.dumps(figures, indent=1))

    save()
    figures["each_further_size_bytes"] = (figures["sizes"]["job-99"] - figures["sizes"]["job"]) / len(FURTHER_SIZES)
    figures["thin"] = restore_thin(folder)
    found = {name: tool(folder, f"deep-{name}", "verify", "--deep", f"{name}.fdry") for name in CAPTURES}
    figures["deep"] = {name: (each["exit"], each["seconds"]) for name, each in found.items()}
    host = tool(folder, "host", "verify", "--host", "job.fdry")
    figures["host"] = (host["exit"], host["seconds"])
    save()
    devices = {
        name: tool(folder, f"device-{name}", "verify", "--device", "--launch", f"{name}.fdry", timeout=200)
        for name in ("small", "steady", "job")
    }
    figures["device"] = {name: (each["exit"], each["seconds"]) for name, each in devices.items()}
    save()
    same = tool(folder, "diff-same", "diff", "job.fdry", "job.fdry")
    job = tool(folder, "diff-job", "diff", "job.fdry", "job-again.fdry", "--up-to", "noise")
    steady = tool(folder, "diff-steady", "diff", "steady.fdry", "steady-again.fdry", "--up-to", "noise")
    other = tool(folder, "diff-other", "diff", "job.fdry", "steady.fdry")
    figures["diff"] = {
        name: (each["exit"], each["document"]["verdict"], each["seconds"], each["document"].get("words"))
        for name, each in (("same", same), ("job", job), ("steady", steady), ("other", other))
    }
    save()
    assert figures["sizes"]["job"] <= ARCHIVE_LIMIT, figures["sizes"]
    assert figures["each_further_size_bytes"] < FURTHER_LIMIT, figures["each_further_size_bytes"]
    assert figures["thin"]["restored"] == figures["thin"]["graphs"] == 3, figures["thin"]
    assert {each["exit"] for each in found.values()} <= {0, 3}, figures["deep"]
    assert host["exit"] == 0, host["document"]
    assert {each["exit"] for each in devices.values()} <= {0, 3}, figures["device"]
    assert (same["exit"], other["exit"]) == (0, 1), figures["diff"]
    # Small numbers and old device addresses are left in unused slots, too, and could be real ones: they stay different.
    for again in (job, steady):
        words = again["document"]["words"]
        assert words.get("different", 0) < 0.03 * sum(words.values()), words
        kinds = {kind["kind"] for kind in again["document"]["kinds"] if kind["counts"].get("different")}
        assert kinds <= {"nodes"}, kinds
    return {"figures": figures}
