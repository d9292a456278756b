"""Measure what each lever of a restore gives: how long the program stands still, and how long its start takes.

    python benchmarks/restore_levers.py [--runs 5] [--sim] [--ways WAY,WAY] [-- COMMAND]

Captures the command once and starts it in each way, in turns, in a process of its own. Left out, the command is the
reference decode job (28 layers, 35 batch sizes) with its adapter, which ends when it is ready; with `--sim` it is the
small decode server of the tests.

`blocked`: the program's threads stood still for images and graphs. `until all built`: the background's time from the
program's first context until the last graph was there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
JOB = [str(ROOT / "tests" / "gpu" / "decode_job_foundry.py"), "--start-only", "--out", "out.json"]
SERVER = [str(ROOT / "tests" / "engines" / "decode_server.py"), "--once", "--quiet"]
sys.path.insert(0, str(Path(__file__).resolve().parent))

from measuring.figures import SECONDS, figure  # noqa: E402
from measuring.process import FOUNDRY  # noqa: E402
from measuring.question import Answer, Asked, Question  # noqa: E402

TRIM = "FOUNDRY_TRIM"
WAYS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "late": (("--no-early",), {}),
    "early": ((), {}),
    "late+trimmed": (("--no-early",), {TRIM: "1"}),
    "early+trimmed": ((), {TRIM: "1"}),
}
"""Options and variables of each way to restore."""
BLOCKED_GOAL, READY_GOAL = 0.05, 0.15
PARTS = ("images", "kernels", "graphs", "instantiate", "map", "image_check", "early", "background")


def restored(way: str, archive: Path, command: Sequence[str], folder: Path, sim: list[str]) -> dict[str, float]:
    """Start the command once and give its times. An error if not all its graphs came back."""
    options, variables = WAYS[way]
    report = folder / "report.json"
    words = [*FOUNDRY, "restore", *sim, "-q", *options, "--report", str(report), str(archive), "--", *command]
    begin = time.perf_counter()
    environment = {**os.environ, **variables}
    subprocess.run(words, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - begin
    told: dict[str, Any] = json.loads(report.read_text())
    (process,) = told["processes"]
    if told["graphs_given_up"] or told["graphs_restored"] != told["graphs_in_archive"]:
        raise RuntimeError(
            f"{way}: {told['graphs_restored']} of {told['graphs_in_archive']} graphs: {process['given_up']}"
        )
    seconds = process["seconds"]
    asked = process["counters"].get("graphs_blocked_ns", 0) / 1e9
    parts = {name: seconds[name] for name in PARTS if name in seconds}
    handed = float(process["counters"].get("images_handed_over", 0))
    return {
        "whole start": wall,
        "blocked": max(asked, seconds["blocked"]),
        "until all built": seconds["ready"],
        "images handed over": handed,
        **parts,
    }


def measure(asked: Asked) -> Answer:
    """Capture once, then start in all ways, in turns."""
    sim = ["--sim"] if asked.options.sim else []
    command = asked.options.command or [sys.executable, *(SERVER if sim else JOB)]
    ways = asked.options.ways.split(",")
    archive = asked.folder / "job.fdry"
    capture = [*FOUNDRY, "capture", *sim, "-q", "-o", str(archive), "--", *command]
    subprocess.run(capture, check=True, cwd=asked.folder, stdout=subprocess.DEVNULL)
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for way in ways:
        restored(way, archive, command, asked.folder, sim)  # the image is made, and files are in the page cache
    for _ in range(asked.runs):
        for way in ways:
            found[way].append(restored(way, archive, command, asked.folder, sim))
    figures: dict[str, dict[str, Any]] = {}
    details: dict[str, dict[str, Any]] = {}
    for way, runs in found.items():
        goals = {"blocked": BLOCKED_GOAL, "until all built": READY_GOAL} if not sim else {}
        for name in ("whole start", "blocked", "until all built"):
            figures[f"{way}: {name}"] = figure([one[name] for one in runs], SECONDS, goal=goals.get(name))
        details[way] = {name: sorted(one[name] for one in runs) for name in runs[0]}
    about = {
        "command": Path(command[1]).name if len(command) > 1 else command[0],
        "archive_bytes": archive.stat().st_size,
    }
    return Answer(figures, about, {"seconds": details}, suffix="" if not sim else "-sim")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say what is started, and how."""
    parser.add_argument("--sim", action="store_true", help="on the simulator")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("command", nargs="*")


QUESTION = Question("restore-levers", "what does each lever of a restore give", measure, 5, add_options)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
