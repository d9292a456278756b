"""Measure what the hook adds to the start of a job: in a restore that was given up, and in a capture.

    python benchmarks/start_share.py [--runs 5] [--ways plain,disarmed,capture] [--ready REGEX] [--sim] [-- COMMAND]

Runs the command in each way, in turns, in a process of its own. The start is the time until a line of its output
matches the expression, or until it ends. Left out, the command is the plain decode job (28 layers, 35 batch sizes, no
adapter), which is ready when it says how long its graphs took. `capture` is the whole of `foundry capture` up to there,
`captured` the hook alone.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
JOB = HERE.parent / "tests" / "engines" / "workloads" / "decode_job.py"
sys.path.insert(0, str(HERE))

import hooked  # noqa: E402
from measuring.figures import SECONDS, spread  # noqa: E402
from measuring.process import FOUNDRY  # noqa: E402
from measuring.question import Answer, Asked, Question  # noqa: E402

CAPTURE = "capture"
WAYS = (hooked.PLAIN, hooked.OFF, hooked.DISARMED, hooked.CAPTURED, CAPTURE)
LIMITS = {hooked.DISARMED: 0.03, CAPTURE: 0.15}
"""By which share of the plain start each may be longer."""
PHASE = re.compile(r"(\w+) ([0-9.]+) s\b")


def start(way: str, command: list[str], ready: re.Pattern[str], folder: Path, simulated: bool) -> dict[str, float]:
    """Run the command once; return the seconds until it was ready and until it ended, and the phases that it names."""
    environment = hooked.environment(hooked.PLAIN if way == CAPTURE else way, folder, simulated=simulated)
    if way == CAPTURE:
        options = ["-q", "-f", "-o", str(folder / "job.fdry"), *(["--sim"] if simulated else [])]
        command = [*FOUNDRY, "capture", *options, "--", *command]
    found: dict[str, float] = {}
    begin = time.perf_counter()
    with subprocess.Popen(
        command, env={**environment, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if "start" not in found and ready.search(line):
                found["start"] = time.perf_counter() - begin
                found |= {name: float(seconds) for name, seconds in PHASE.findall(line)}
    if run.returncode:
        raise RuntimeError(f"{way}: the command ended with {run.returncode}")
    hooked.check(way, environment)
    found["whole"] = time.perf_counter() - begin
    return {"start": found["whole"], **found}


def measure(
    folder: Path, command: list[str], *, ways: list[str], runs: int, ready: str, simulated: bool
) -> dict[str, Any]:
    """Run each way so often, in turns: a first round is thrown away, as it reads the files from the disk."""
    told: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    start(ways[0], command, re.compile(ready), folder, simulated)
    for number in range(runs):
        for way in ways if number % 2 == 0 else reversed(ways):
            told[way].append(start(way, command, re.compile(ready), folder, simulated))
            print(f"{number + 1} of {runs}: {way}: {json.dumps(told[way][-1])}", file=sys.stderr, flush=True)
    return {
        "seconds": {
            way: {name: spread([one[name] for one in found]) for name in found[0]} for way, found in told.items()
        },
        "added_share": {way: added(told[way], told[ways[0]]) for way in ways[1:]},
    }


def added(found: list[dict[str, float]], plain: list[dict[str, float]]) -> dict[str, Any]:
    """Give by how much the start is longer: in seconds and as a share of the medians, and run by run."""
    medians = [statistics.median(run["start"] for run in runs) for runs in (found, plain)]
    pairs = [one["start"] / other["start"] - 1 for one, other in zip(found, plain, strict=True)]
    return {
        "seconds": medians[0] - medians[1], "of_medians": medians[0] / medians[1] - 1,
        "by_run": spread(pairs),
    }  # fmt: skip


def failures(figures: Mapping[str, Any]) -> list[str]:
    """Name each way that adds more than it may."""
    shares = figures["added_share"]
    return [
        f"{way}: the start is {share:.1%} longer, the limit is {limit:.0%}"
        for way, limit in LIMITS.items()
        if way in shares and (share := shares[way]["of_medians"]) >= limit
    ]


def answer(asked: Asked) -> Answer:
    """Measure, and give the starts as figures that are compared."""
    options = asked.options
    ways = options.ways.split(",")
    if unknown := set(ways) - set(WAYS):
        sys.exit(f"no such way: {', '.join(sorted(unknown))}")
    command = options.command or [sys.executable, str(JOB)]
    found = measure(asked.folder, command, ways=ways, runs=asked.runs, ready=options.ready, simulated=options.sim)
    figures = {f"{way}, start": {"unit": SECONDS, **found["seconds"][way]["start"]} for way in ways}
    suffix = f"-{Path(command[-1] if len(command) == 1 else command[1]).stem}" if options.command else ""
    about = {"command": " ".join(Path(word).name for word in command)}
    return Answer(figures, about, {"limits": LIMITS, **found}, failures(found), suffix)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say what is started, and in which ways."""
    ways = f"the first is compared with; of: {', '.join(WAYS)}"
    parser.add_argument("--ways", default="plain,disarmed,capture", help=ways)
    parser.add_argument("--ready", default=r"\d+ graphs: ")
    parser.add_argument("--sim", action="store_true", help="on the simulator; its figures are never GPU figures")
    parser.add_argument("command", nargs="*")


QUESTION = Question("start-share", "how much does the hook add to a job's start", answer, 5, add_options)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
