"""A command, run as a process of its own: how long it takes, how much memory, how many instructions."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measuring.figures import BYTES, INSTRUCTIONS, PROCESSOR_SECONDS, SECONDS, figure
from measuring.results import ROOT

FOUNDRY = (sys.executable, str(ROOT / "tests" / "helpers" / "run_foundry.py"))
"""The command line as it is installed, whatever the working folder."""
COUNTED_RUNS = 2
EVENT = "instructions:u"


class Run(NamedTuple):
    """One run: the time that passed, the time on all cores, the greatest memory of one process."""

    seconds: float
    processor_seconds: float
    peak_bytes: int


class CommandFailedError(RuntimeError):
    """What is measured ended in another way than it must."""


def run(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None, codes: Sequence[int] = (0,)
) -> Run:
    """Run a command once. CommandFailedError if it ends with another exit code."""
    with tempfile.TemporaryFile("w+") as said:
        begin = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            said.seek(0)
            raise CommandFailedError(f"`{' '.join(command)}` ended with {process.returncode}: {said.read()}")
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss << 10)


def figures(
    name: str,
    command: Sequence[str],
    folder: Path,
    runs: int,
    *,
    codes: Sequence[int] = (0,),
    goal: float | None = None,
) -> dict[str, dict[str, Any]]:
    """Run a command so often, after once for the caches, and give its figures. `goal`: seconds, at most."""
    run(command, folder, codes=codes)
    found = [run(command, folder, codes=codes) for _ in range(runs)]
    made = {
        name: figure([one.seconds for one in found], SECONDS, goal=goal),
        f"{name}, all cores": figure([one.processor_seconds for one in found], PROCESSOR_SECONDS),
        f"{name}, memory": figure([one.peak_bytes for one in found], BYTES),
    }
    counted = instructions(command, folder, COUNTED_RUNS)
    return made | ({f"{name}, instructions": figure(counted, INSTRUCTIONS)} if counted else {})


@functools.cache
def counts_instructions() -> bool:
    """Whether this machine counts them: many virtual ones do not."""
    return shutil.which("perf") is not None and _counted(["true"], Path("/")) is not None


def instructions(
    command: Sequence[str], folder: Path, runs: int, environment: Mapping[str, str] | None = None
) -> list[float]:
    """Count the instructions of a command and what it starts, in user mode; empty where that cannot be had."""
    if not counts_instructions():
        return []
    return [count for _ in range(runs) if (count := _counted(command, folder, environment)) is not None]


def _counted(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> float | None:
    with tempfile.NamedTemporaryFile("r") as told:
        words = ["perf", "stat", "-x", ";", "-e", EVENT, "-o", told.name, "--", *command]
        nothing = subprocess.DEVNULL
        subprocess.run(words, cwd=folder, env=environment, stdout=nothing, stderr=nothing, check=False)
        lines = [line.split(";") for line in told.read().splitlines() if EVENT in line]
    return float(lines[0][0]) if lines and lines[0][0].isdigit() else None
