"""Measure a decode job's whole start, from the command to its first token: plainly, restored, and through the peer.

    python benchmarks/whole_start.py [--peer FOLDER] [--unreached] [--runs 5] [--keep]

The reference decode job (28 layers, 35 batch sizes; `start_job.py`) is started in all ways, in turns, each in a process
of its own. FOLDER is where the public peer is installed (`pip install --target FOLDER foundry-core==0.1.0rc3`, built
against the same torch); without it only the other ways are measured. With `--unreached` nothing but the first launch of
a graph that the background has not reached.

`graphs` is how long the program stands still for them: warm-ups, captures and instantiation, or loading modules and
graphs. `device memory` is what the GPU holds once each graph was replayed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measuring.figures import BYTES, SECONDS, figure
from measuring.process import FOUNDRY
from measuring.question import Answer, Asked, Question

PROGRAM = Path(__file__).resolve().parent / "start_job.py"
PLAIN, RESTORED, LATE, PEER = "plain", "restored", "restored without early start", "peer"
UNREACHED = "restored, last graph first"
LAST = 1
"""The size that is captured last."""
UNREACHED_GOAL = 0.005
PEER_HOOK = "libcuda_hook.so"
TOLD = "told.json"
GRAPHS = (("context", "modules"), ("weights", "graphs"))
"""Moments between which the program stands still for graphs."""


def started(words: Sequence[object], folder: Path, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Start the job once, and return what it told, with the time that it stood still for graphs."""
    out = folder / TOLD
    out.unlink(missing_ok=True)
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    subprocess.run(
        list(map(str, words)),
        check=True,
        cwd=folder,
        env={**(environment or os.environ), "BEGAN": repr(began)},
        stdout=subprocess.DEVNULL,
        timeout=300,
    )
    told: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    moments = told["moments"]
    told["graphs"] = sum(moments[end] - moments[begin] for begin, end in GRAPHS)
    return told


def measure(asked: Asked) -> Answer:
    """Capture once each, then start in all ways, in turns."""
    folder, archive = asked.folder, asked.folder / "job.fdry"
    job = [sys.executable, PROGRAM]
    mine = [*job, "foundry", TOLD]
    started([*FOUNDRY, "capture", "-q", "-f", "-o", archive, "--", *mine], folder)
    restore = [*FOUNDRY, "restore", "-q"]
    ways: dict[str, tuple[list[object], dict[str, str] | None]] = {
        PLAIN: ([*job, "torch", TOLD], None),
        RESTORED: ([*restore, archive, "--", *mine], None),
        LATE: ([*restore, "--no-early", archive, "--", *mine], None),
        UNREACHED: (
            [*restore, "--no-early", "--allow", "mismatch-arguments", archive, "--", *mine, "--first", LAST],
            None,
        ),
    }
    sizes = {RESTORED: archive.stat().st_size}
    if asked.options.peer is not None and not asked.options.unreached:
        kept = folder / "peer"
        kept.mkdir()
        environment = _peer_environment(asked.options.peer)
        started([*job, "peer-save", TOLD, kept], folder, environment)
        ways[PEER] = ([*job, "peer-load", TOLD, kept], environment)
        sizes[PEER] = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file())
    if asked.options.unreached:
        ways = {UNREACHED: ways[UNREACHED]}
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for turn in range(asked.runs + 1):
        for way, (words, environment_of_way) in ways.items():
            told = started(words, folder, environment_of_way)
            if turn:  # the first makes images and fills the page cache
                found[way].append(told)
    return _answer(found, sizes)


def _answer(found: dict[str, list[dict[str, Any]]], sizes: dict[str, int]) -> Answer:
    figures: dict[str, dict[str, Any]] = {}
    for way, runs in found.items():
        if way == UNREACHED:
            continue
        figures |= {
            f"{way}: first token": figure([run["moments"]["first token"] for run in runs], SECONDS),
            f"{way}: graphs": figure([run["graphs"] for run in runs], SECONDS),
            f"{way}: device memory": figure([run["device_bytes"] for run in runs], BYTES),
        }
    over = [run["first_launch_ms"] - run["replay_ms"][str(LAST)] for run in found[UNREACHED]]
    figures["first launch of a graph that the background has not reached, over its replay"] = figure(
        [milliseconds / 1e3 for milliseconds in over], SECONDS, goal=UNREACHED_GOAL
    )
    figures |= {f"{way}: archive": figure([size], BYTES) for way, size in sizes.items()}
    moments = {
        way: {name: statistics.median(run["moments"][name] for run in runs) for name in runs[0]["moments"]}
        for way, runs in found.items()
    }
    replays = {
        way: {size: statistics.median(run["replay_ms"][size] for run in runs) for size in runs[0]["replay_ms"]}
        for way, runs in found.items()
    }
    suffix = "-unreached" if list(found) == [UNREACHED] else ""
    return Answer(figures, {"ways": list(found)}, {"moments": moments, "replay_ms": replays}, suffix=suffix)


def _peer_environment(folder: Path) -> dict[str, str]:
    hooks = sorted(folder.rglob(PEER_HOOK))
    if not hooks:
        raise SystemExit(f"{folder} has no {PEER_HOOK}: the peer is not installed there")
    return {**os.environ, "PYTHONPATH": str(folder), "LD_PRELOAD": str(hooks[0])}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say where the peer is."""
    parser.add_argument("--peer", type=Path, metavar="FOLDER", help="where the public peer is installed")
    parser.add_argument("--unreached", action="store_true", help="only the graph that is asked for before its turn")
    parser.set_defaults(sim=False)


QUESTION = Question(
    "whole-start", "how long does a job's whole start take, to its first token", measure, 5, add_options
)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
