"""Measure how long `foundry restore` takes of its own before the command starts.

    python benchmarks/start_overhead.py [--runs 9] [--keep]

For the small archive of the demo's server, and for a made-up large one (`measuring/captures.py`): with the restore
image cached, and without it, when it is made behind the command; then also how long it takes until the image is there.
Runs on the simulator, as no driver is touched before the command starts: the time is that of this machine's processor
and disk, with the archive in the page cache. The command prints the clock as its first act, and again when the image
that it was promised is there; the same command run directly, in turns, is subtracted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import captures, process
from measuring.figures import INSTRUCTIONS, SECONDS, figure
from measuring.process import FOUNDRY
from measuring.question import Answer, Asked, Question
from measuring.results import ROOT

SERVER = ROOT / "tests" / "engines" / "decode_server.py"
ALLOWED = ["--allow", "mismatch-arguments", "--allow", "mismatch-gpu-model"]
LOOKS = 1000
CLOCK = [
    "sh", "-c",
    f"date +%s%N; for look in $(seq {LOOKS}); do "
    '[ -z "$FOUNDRY_IMAGE" ] || [ -d "$FOUNDRY_IMAGE" ] && break; sleep 0.01; done; date +%s%N',
]  # fmt: skip
GOAL = 0.10
GOAL_PER_GB = 1.0
"""Seconds more for a GB of raw content, where the image is made first."""


def clocks_after(command: Sequence[str], environment: dict[str, str], folder: Path) -> tuple[float, float]:
    """Return the seconds from now until the command printed the clock first, and last."""
    begin = time.time_ns()
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    first, last = map(int, done.stdout.split())
    return (first - begin) / 1e9, (last - begin) / 1e9


def measure(asked: Asked) -> Answer:
    """Start the clock through `foundry restore` and directly, in turns."""
    from foundry import archive

    folder, cache = asked.folder, asked.folder / "cache"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    small = folder / "server.fdry"
    server = [sys.executable, str(SERVER), "--once", "--quiet"]
    subprocess.run(
        [*FOUNDRY, "capture", "--sim", "-q", "-o", str(small), "--", *server],
        env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    archives = {"small archive": small, "large archive": asked.captures.have(captures.SIMULATED) / captures.SIMULATED}
    raw = {name: archive.summary(path).raw_size for name, path in archives.items()}
    identity = {name: archive.summary(path).capture_id for name, path in archives.items()}
    found = {}
    for name, path in archives.items():
        restore = [*FOUNDRY, "restore", "--sim", "-q", *ALLOWED, str(path), "--", *CLOCK]
        for cached in (True, False):
            started, there = [], []
            if cached:
                clocks_after(restore, environment, folder)
            for _ in range(asked.runs):
                if not cached:
                    shutil.rmtree(cache, ignore_errors=True)
                through, direct = (clocks_after(command, environment, folder) for command in (restore, CLOCK))
                started.append(through[0] - direct[0])
                there.append(through[1] - direct[1])
            goal = GOAL if cached else GOAL + GOAL_PER_GB * raw[name] / 1e9
            if not list(cache.glob(f"foundry/images/{identity[name][:32]}*/*.image")):
                raise RuntimeError(f"{name}: started without restore")
            found[f"{name}, image {'' if cached else 'not '}cached"] = figure(started, SECONDS, goal=goal)
            if not cached:
                found[f"{name}, until the image is there"] = figure(there, SECONDS)
        if counted := process.instructions(restore, folder, process.COUNTED_RUNS, environment):
            found[f"{name}, image cached, instructions"] = figure(counted, INSTRUCTIONS)
    return Answer(found, {"raw_bytes": raw["large archive"]}, {"raw_bytes_of_small": raw["small archive"]})


QUESTION = Question("start-overhead", "how long does `foundry restore` take before the command starts", measure, runs=9)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
