"""Measure what the hook adds to single driver calls: launches, launches in a capture, graph launches, allocations.

    python benchmarks/launch_overhead.py [--sim] [--runs 7] [--rounds 60] [--keep]

A small C program is run in five ways, in turns: plainly, with the hook preloaded but off, under `foundry capture`,
under `foundry restore`, and with a restore that was given up. In each process every call is timed through the function
that a CUDA runtime is given and through the driver's own, batch by batch in turns: the difference is what is added, and
the plain process, where both are one function, shows how far the method itself is off.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hooked
from measuring.figures import INSTRUCTIONS, SECONDS, spread
from measuring.process import FOUNDRY
from measuring.question import Answer, Asked, Question

WAYS = ("plain", "off", "capture", "restore", "disarmed")
LAUNCHES = ("launch", "captured_launch", "graph_launch")
LIMIT_NANOSECONDS = 60.0
PTX = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry nothing(.param .u64 memory)\n{\n    ret;\n}\n"
SIMULATED = '#include "sim_kernel.h"\n// kernel: nothing(ptr)\nFOUNDRY_SIM_KERNEL(nothing) {\n}\n'


class Bench:
    """The compiled program, the kernel's image, and how the program is run in each way."""

    def __init__(self, folder: Path, simulated: bool, rounds: int) -> None:
        self.folder, self.simulated = folder, simulated
        program, image = hooked.build(folder, "launch_overhead", simulated=simulated, kernel=SIMULATED, ptx=PTX)
        self.command = [str(program), str(image), str(rounds)]
        self.archive = folder / "archive.fdry"
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        self._foundry("capture", "-f", "-o", str(self.archive))

    def _foundry(self, command: str, *options: str) -> str:
        words = [*FOUNDRY, command, *(["--sim"] if self.simulated else []), "-q", *options, "--", *self.command]
        return self._output(words, self.environment)

    def _output(self, words: list[str], environment: Mapping[str, str]) -> str:
        return subprocess.run(words, env=dict(environment), check=True, stdout=subprocess.PIPE, text=True).stdout

    def run(self, way: str) -> str:
        """Run the program and return what it printed."""
        if way == "capture":
            return self._foundry("capture", "-f", "-o", str(self.folder / "other.fdry"))
        if way == "restore":
            return self._foundry("restore", str(self.archive))
        environment = hooked.environment(way, self.folder, simulated=self.simulated)
        told = self._output(self.command, environment)
        hooked.check(way, environment)
        return told


def timings(text: str) -> dict[str, dict[str, float]]:
    """Give the medians over pairs of rounds of one process: in each of two another function comes first."""
    lines = [line.split() for line in text.splitlines()]
    warm = next(number for number, line in enumerate(lines) if line[0] == "warm")
    found: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(line[0] for line in lines[warm + 1 :]):
        rounds = [tuple(map(float, line[1:])) for line in lines[warm + 1 :] if line[0] == name]
        pairs = zip(rounds[::2], rounds[1::2], strict=False)
        rows = [tuple(map(statistics.mean, zip(*pair, strict=True))) for pair in pairs]
        found[name] = {
            "nanoseconds": statistics.median(row[0] for row in rows),
            "driver_nanoseconds": statistics.median(row[1] for row in rows),
            "added_nanoseconds": statistics.median(row[0] - row[1] for row in rows),
            "added_instructions": statistics.median(row[2] - row[3] for row in rows),
            "driver_instructions": statistics.median(row[3] for row in rows),
        }
    return found


def measure(folder: Path, *, simulated: bool, runs: int, rounds: int) -> dict[str, Any]:
    """Run all ways in turns and return the medians over the runs."""
    bench = Bench(folder, simulated, rounds)
    told: dict[str, list[dict[str, dict[str, float]]]] = {way: [] for way in WAYS}
    for _ in range(runs):
        for way in WAYS:
            text = bench.run(way)
            if ("restored 1" in text) != (way == "restore"):
                raise RuntimeError(f"{way}: the graph was {'' if way == 'restore' else 'not '}to be captured anew")
            told[way].append(timings(text))
    return {way: merged(found) for way, found in told.items()}


def merged(found: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, Any]:
    """Give the spread of each figure over the runs of a way."""
    return {
        name: {figure: rounded(spread([run[name][figure] for run in found])) for figure in found[0][name]}
        for name in found[0]
    }


def rounded(figures: Mapping[str, float]) -> dict[str, float]:
    """Keep what can be told apart."""
    return {name: round(value, 1) for name, value in figures.items()}


def failures(ways: Mapping[str, Any], of_runs: str = "median") -> list[str]:
    """Name each launch to which the hook adds more than it may, by the median of all runs or another of them."""
    return [
        f"{way}, {name}: {added:.0f} ns are added, the limit is {LIMIT_NANOSECONDS:.0f} ns"
        for way in WAYS
        for name in LAUNCHES
        if (added := ways[way][name]["added_nanoseconds"][of_runs]) >= LIMIT_NANOSECONDS
    ]


def answer(asked: Asked) -> Answer:
    """Measure, and give the launches as figures that are compared."""
    simulated, rounds = asked.options.sim, asked.options.rounds
    ways = measure(asked.folder, simulated=simulated, runs=asked.runs, rounds=rounds)
    figures = {}
    for way in WAYS[2:]:
        for name in LAUNCHES:
            call = ways[way][name]
            label = f"{way}, {name.replace('_', ' ')}"
            figures[label] = in_unit(call["nanoseconds"], SECONDS, 1e-9)
            figures[f"{label}, added"] = in_unit(call["added_nanoseconds"], SECONDS, 1e-9)
            if call["added_instructions"]["median"] > 0:
                figures[f"{label}, added instructions"] = in_unit(call["added_instructions"], INSTRUCTIONS, 1)
    about = {"rounds": rounds, "simulated": simulated}
    return Answer(figures, about, {"limit_nanoseconds": LIMIT_NANOSECONDS, "ways": ways}, failures(ways))


def in_unit(values: Mapping[str, float], unit: str, scale: float) -> dict[str, Any]:
    """Give a spread in another unit."""
    return {"unit": unit, **{name: value if name == "n" else value * scale for name, value in values.items()}}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say on what, and how many rounds a process makes."""
    parser.add_argument("--sim", action="store_true", help="on the simulator; its figures are never GPU figures")
    parser.add_argument("--rounds", type=int, default=60)


QUESTION = Question("launch-overhead", "how much does the hook add to a driver call", answer, 7, add_options)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
