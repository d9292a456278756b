"""Compares captures process by process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from foundry.diff.difference import Difference
from foundry.diff.graphs import compare_graphs
from foundry.model import Capture, Process

Key = TypeVar("Key")
MISSING = "none"


def compare_captures(before: Capture, after: Capture) -> list[Difference]:
    """List the differences of two captures."""
    return list(_captures(before, after))


def _captures(before: Capture, after: Capture) -> Iterator[Difference]:
    for role in _union((p.role for p in before.processes), (p.role for p in after.processes)):
        left, right = before.process(role), after.process(role)
        if left is None or right is None:
            yield Difference(role, "process", _presence(left), _presence(right))
        else:
            yield from _processes(left, right)


def _processes(left: Process, right: Process) -> Iterator[Difference]:
    role = left.role
    for name in ("driver_version", "simulated"):
        yield from _unequal(role, name.replace("_", " "), getattr(left, name), getattr(right, name))
    for one, other in zip(left.devices, right.devices, strict=False):
        for name in ("name", "compute_major", "compute_minor", "multiprocessors", "base", "arena_size"):
            yield from _unequal(f"{role}: device {one.ordinal}", name, getattr(one, name), getattr(other, name))
    yield from _unequal(role, "devices", len(left.devices), len(right.devices))
    graphs = {(g.set, g.key): g for g in left.graphs}, {(g.set, g.key): g for g in right.graphs}
    for set_key in _union(graphs[0], graphs[1]):
        where = f"{role}: graph {'/'.join(set_key)}"
        first, second = graphs[0].get(set_key), graphs[1].get(set_key)
        if first is None or second is None:
            yield Difference(where, "graph", _presence(first), _presence(second))
        else:
            yield from compare_graphs(where, (left, first), (right, second))


def _unequal(where: str, what: str, left: object, right: object) -> Iterator[Difference]:
    if left != right:
        yield Difference(where, what, str(left), str(right))


def _presence(thing: object) -> str:
    return MISSING if thing is None else "present"


def _union(left: Iterable[Key], right: Iterable[Key]) -> list[Key]:
    """Every key once, in the order of the left and then of the right."""
    return list(dict.fromkeys([*left, *right]))
