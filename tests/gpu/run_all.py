"""Run everything that needs a GPU, without pytest, and keep what happened.

    python tests/gpu/run_all.py OUT_DIR [NAME...] [--no-benchmark]

OUT_DIR gets a folder for each scenario with the output of every program, `machine.json`, `summary.json` (rewritten
after each scenario), and the figures of the decode job. A failure is kept and the rest goes on; the exit status counts
them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "benchmarks"), str(HERE.parent / "soak")]

import decode_job  # noqa: E402
import soak  # noqa: E402
from archive_tools import archive_tools  # noqa: E402
from driver_answers import driver_answers  # noqa: E402
from measuring import machine  # noqa: E402
from native_clients import NATIVE_CLIENTS  # noqa: E402
from proving import proven_and_moved  # noqa: E402
from scenarios import FOUNDRY, SCENARIOS  # noqa: E402
from tinyllm_engine import tinyllm_engine  # noqa: E402
from two_gpus import one_gpu_shared, two_gpus  # noqa: E402


def keep_machine(out: Path) -> None:
    """Keep what the machine is, and what foundry says of it."""
    facts = machine.facts()
    (out / "machine.json").write_text(json.dumps(facts, indent=1))
    print(json.dumps(facts), flush=True)
    with (out / "doctor.log").open("w") as log:
        subprocess.run([*FOUNDRY, "doctor"], stdout=log, stderr=subprocess.STDOUT, check=False, timeout=60)


def benchmark(folder: Path) -> dict[str, Any]:
    """Measure the whole decode job and hold it against its limits."""
    figures = decode_job.measure(folder, restores=5)
    decode_job.write(figures, folder)
    problems = decode_job.failures(figures)
    assert not problems, "; ".join(problems)
    return {"figures": decode_job.short(figures)}


def soak_cycles(folder: Path) -> dict[str, Any]:
    """Capture and restore again and again, for no longer than is set aside for it."""
    seconds = float(os.environ.get("SOAK_SECONDS", "170"))
    return with_machine(soak.cycles(folder, count=50, seconds=seconds, at_once=4))


def soak_runs(folder: Path) -> dict[str, Any]:
    """Replay, capture and update for long."""
    return with_machine(soak.runs(folder))


def with_machine(figures: dict[str, Any]) -> dict[str, Any]:
    """Say with the figures what they were measured on."""
    return {"figures": {"date": time.strftime("%Y-%m-%d"), "machine": machine.facts(), **figures}}


STEPS: dict[str, Any] = {
    **SCENARIOS,
    "driver_answers": driver_answers,
    "soak_runs": soak_runs,
    "soak_cycles": soak_cycles,
    "proven_and_moved": proven_and_moved,
    "archive_tools": archive_tools,
    "tinyllm_engine": tinyllm_engine,
    "two_gpus": two_gpus,
    "one_gpu_shared": one_gpu_shared,
    **NATIVE_CLIENTS,
    "benchmark": benchmark,
}
WITH_FIGURES = ("soak_runs", "soak_cycles", "archive_tools", "tinyllm_engine", *NATIVE_CLIENTS, "benchmark")


def kept(folder: Path) -> dict[str, Any]:
    """Read the figures that a step kept before it failed."""
    try:
        return {"figures": json.loads((folder / "figures.json").read_text())}
    except (OSError, ValueError):
        return {}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="run everything that needs a GPU")
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(STEPS)}; all if left out")
    parser.add_argument("--no-benchmark", action="store_true")
    parser.add_argument("--keep-archives", action="store_true", help="leave the archives in OUT_DIR")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    summary: dict[str, Any] = {}
    names = arguments.names or [name for name in STEPS if name != "benchmark" or not arguments.no_benchmark]
    try:
        keep_machine(out)
    except Exception:
        traceback.print_exc()
    for name in names:
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        try:
            detail = STEPS[name](out / name)
            summary[name] = {"passed": True}
            if name in WITH_FIGURES:
                summary[name] |= detail
        except Exception as error:
            traceback.print_exc()
            summary[name] = {"passed": False, "error": f"{type(error).__name__}: {error}"[:4000]} | kept(out / name)
        summary[name]["seconds"] = round(time.monotonic() - begin, 1)
        (out / "summary.json").write_text(json.dumps(summary, indent=1))
        if not arguments.keep_archives:
            for archive in (out / name).glob("*.fdry"):
                archive.unlink()
    failed = [name for name, result in summary.items() if not result["passed"]]
    for name, result in summary.items():
        how = "skipped" if "skipped" in result else "passed" if result["passed"] else "FAILED"
        print(f"{how}  {name}  {result.get('skipped') or str(result['seconds']) + ' s'}", flush=True)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
