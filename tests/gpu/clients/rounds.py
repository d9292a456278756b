"""What the Python jobs of this folder share: rounds on other inputs each, through a graph and launch by launch."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy

ROUNDS = 3
Run = Callable[[numpy.ndarray, Callable[[], object]], bytes]
"""Puts values where the work reads them, does the work, and gives what it wrote."""


def call(answer: tuple[Any, ...]) -> Any:
    """Return what a driver function gave, or raise with the name of its error."""
    result, *values = answer
    if int(result) != 0:
        raise RuntimeError(f"the driver said {result!r}")
    return values[0] if values else None


def fresh(name: object, size: int, number: int) -> numpy.ndarray:
    """Make the inputs of a round: the same in every start, other ones in each round and for each graph."""
    seed = int.from_bytes(hashlib.sha256(f"{name} {number}".encode()).digest()[:8], "little")
    return numpy.random.Generator(numpy.random.PCG64(seed)).integers(0, 1 << 32, size, dtype=numpy.uint32)


class Rounds:
    """Prints what graphs gave, and keeps where that was not what their launches gave."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.unequal: list[str] = []

    def compare(self, name: object, size: int, graph: Callable[[], object], launches: Callable[[], object]) -> None:
        """Run rounds through the graph, and each launch by launch, too."""
        for number in range(ROUNDS):
            values = fresh(name, size, number)
            given = self.run(values, graph)
            if given != self.run(values, launches):
                self.unequal.append(f"{name}, round {number}")
            print(name, number, hashlib.sha256(given).hexdigest(), flush=True)

    def finish(self, graphs: Mapping[Any, Any], reasons: Mapping[str, str]) -> int:
        """Tell what became of the graphs, and give the exit status."""
        became = {str(key): "restored" if graph.restored else "captured" for key, graph in graphs.items()}
        print("facts", json.dumps(became), file=sys.stderr)
        for key, reason in reasons.items():
            print(f"{key} was captured: {reason}", file=sys.stderr)
        for where in self.unequal:
            print(f"{where}: the graph gives other bytes than its launches", file=sys.stderr)
        return 1 if self.unequal else 0
