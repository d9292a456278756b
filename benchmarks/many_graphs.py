"""Measure what graphs cost by their number: how long a restored program stands still for them.

    python benchmarks/many_graphs.py [--sim] [--graphs 32,64,128,256,512] [--nodes 1000] [--runs 5] [--keep]

A small C program (`many_graphs.c`) captures so many graphs of so many kernels. It is run plainly, and restored from an
archive of its own. `first`: from its first question until the first graph can be launched; `all`: until all can be.
`floor` is what the driver alone takes to instantiate so many of them, on two threads. `last` is what the graph that was
captured last takes when it is asked for before all others: asking and its first launch, less a second launch.
From 1,024 graphs on, which take so long, the plain run and the floor are run once, and the last is not asked for first.
`--sim` is the simulator, where a driver call costs next to nothing: what is left is Foundry's own part.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hooked
from measuring.figures import SECONDS, figure
from measuring.process import FOUNDRY
from measuring.question import Answer, Asked, Question

NUMBERS = "32,64,128,256,512"
NODES = 1000
WORDS = 8
LARGE = 1024
LAST_GOAL = 0.005
SIMULATED = f"""#include "sim_kernel.h"
// kernel: nothing(ptr{", u64" * (WORDS - 1)})
FOUNDRY_SIM_KERNEL(nothing) {{
}}
"""
PTX = f""".version 6.3
.target sm_75
.address_size 64
.visible .entry nothing({", ".join(f".param .u64 word{number}" for number in range(WORDS))})
{{
    ret;
}}
"""


class Program:
    """The compiled program, its kernel, and how it is run."""

    def __init__(self, folder: Path, *, simulated: bool) -> None:
        self.folder, self.simulated = folder, simulated
        program, image = hooked.build(folder, "many_graphs", simulated=simulated, kernel=SIMULATED, ptx=PTX)
        self._words = [str(program), str(image)]
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}

    def command(self, graphs: int, nodes: int, *more: str) -> list[str]:
        """Give the command that makes or asks for so many graphs."""
        return [*self._words, str(graphs), str(nodes), *more]

    def run(self, command: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
        """Run a command and return what the program told."""
        done = subprocess.run(command, env=dict(environment), check=True, stdout=subprocess.PIPE, text=True)
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return told

    def plainly(self, graphs: int, nodes: int, *more: str) -> dict[str, Any]:
        """Run it without the hook."""
        environment = hooked.environment(hooked.PLAIN, self.folder, simulated=self.simulated)
        return self.run(self.command(graphs, nodes, *more), environment)

    def foundry(self, word: str, *options: str, graphs: int, nodes: int, more: Sequence[str] = ()) -> dict[str, Any]:
        """Run it under a command of Foundry."""
        simulated = ["--sim"] if self.simulated else []
        command = self.command(graphs, nodes, *more)
        return self.run([*FOUNDRY, word, *simulated, "-q", *options, "--", *command], self.environment)

    def asked_for_last(self, archive: Path, graphs: int, nodes: int) -> float:
        """Restore it, with the last graph asked for before all others."""
        options = ["--allow", "mismatch-arguments", str(archive)]
        told = self.foundry("restore", *options, graphs=graphs, nodes=nodes, more=["last"])
        if told["last"] < 0:
            raise RuntimeError("the last graph was not restored")
        return float(told["last"])


def measure(asked: Asked) -> Answer:
    """Run plainly and restored, in turns, for each number of graphs."""
    numbers, nodes = asked.options.graphs, asked.options.nodes
    program = Program(asked.folder, simulated=asked.options.sim)
    figures: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    report = asked.folder / "report.json"
    for number in numbers:
        archive = asked.folder / f"{number}.fdry"
        program.foundry("capture", "-f", "-o", str(archive), graphs=number, nodes=nodes)
        plain, restored, floor, last = [], [], [], []
        for turn in range(asked.runs + 1):
            if turn == 1 or (turn and number < LARGE):
                plain.append(program.plainly(number, nodes))
                floor.append(program.plainly(number, nodes, "floor"))
            other = program.foundry("restore", "--report", str(report), str(archive), graphs=number, nodes=nodes)
            if other["restored"] != number:
                raise RuntimeError(f"{other['restored']} of {number} graphs were restored")
            if turn:  # the first one makes the image
                restored.append(other | {"parts": json.loads(report.read_text())["processes"][0]["seconds"]})
                if number < LARGE:
                    last.append(program.asked_for_last(archive, number, nodes))
        figures |= {
            f"{number} graphs, floor": figure([run["floor"] for run in floor], SECONDS),
            f"{number} graphs, plain, all": figure([run["all"] for run in plain], SECONDS),
            f"{number} graphs, restored, first": figure([run["first"] for run in restored], SECONDS),
            f"{number} graphs, restored, all": figure([run["all"] for run in restored], SECONDS),
        }
        if last:
            figures[f"{number} graphs, restored, last"] = figure(last, SECONDS, goal=LAST_GOAL)
        parts[str(number)] = {
            name: statistics.median(run["parts"][name] for run in restored) for name in restored[0]["parts"]
        }
        archive.unlink()
    about = {"numbers": numbers, "nodes": nodes, "parameter_words": WORDS}
    suffix = f"-{numbers[0]}" if len(numbers) == 1 else ""
    return Answer(figures, about, {"hook_seconds_over_its_threads": parts}, suffix=suffix)


def numbers_of(text: str) -> list[int]:
    """Read a list of numbers."""
    return [int(word) for word in text.split(",")]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say how many graphs, of how many nodes, and on what."""
    parser.add_argument("--sim", action="store_true", help="on the simulator; its figures are never GPU figures")
    parser.add_argument("--graphs", type=numbers_of, default=numbers_of(NUMBERS))
    parser.add_argument("--nodes", type=int, default=NODES)


QUESTION = Question(
    "many-graphs", "how does the time that a restored program waits grow with its graphs", measure, 5, add_options
)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
