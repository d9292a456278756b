"""Measure what recording costs: bytes of spool and time for each graph that is captured, on the simulator.

    python benchmarks/spool_cost.py [--graphs 256] [--nodes 1000] [--runs 5] [--keep]

A small C program (`many_graphs.c`) captures and instantiates so many graphs of so many kernels, plainly and with the
hook that records, in turns. The simulator's own calls take little, so the difference is the hook's.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import hooked
from many_graphs import NODES, WORDS, Program
from measuring.figures import BYTES, SECONDS, figure
from measuring.question import Answer, Asked, Question

from foundry import env

GRAPHS = 256


def measure(asked: Asked) -> Answer:
    """Capture plainly and recorded, in turns."""
    graphs, nodes = asked.options.graphs, asked.options.nodes
    program = Program(asked.folder, simulated=True)
    plain, recorded, sizes = [], [], []
    for turn in range(asked.runs + 1):
        one = program.plainly(graphs, nodes)
        environment = hooked.environment(hooked.CAPTURED, asked.folder, simulated=True)
        other = program.run(program.command(graphs, nodes), environment)
        hooked.check(hooked.CAPTURED, environment)
        spool = Path(environment[env.SPOOL])
        if turn:
            plain.append(one["all"] / graphs)
            recorded.append(other["all"] / graphs)
            sizes.append(sum(path.stat().st_size for path in spool.rglob("*") if path.is_file()) / graphs)
        shutil.rmtree(spool)
    added = [one - other for one, other in zip(recorded, plain, strict=True)]
    return Answer(
        {
            "a graph, plain": figure(plain, SECONDS),
            "a graph, recorded": figure(recorded, SECONDS),
            "added to a graph": figure(added, SECONDS),
            "added to a node": figure([seconds / nodes for seconds in added], SECONDS),
            "spool of a graph": figure(sizes, BYTES),
            "spool of a node": figure([size / nodes for size in sizes], BYTES),
        },
        {"graphs": graphs, "nodes": nodes, "parameter_words": WORDS},
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say how many graphs, of how many nodes."""
    parser.add_argument("--graphs", type=int, default=GRAPHS)
    parser.add_argument("--nodes", type=int, default=NODES)


QUESTION = Question("spool-cost", "what does recording a graph cost, in time and in bytes", measure, 5, add_options)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
