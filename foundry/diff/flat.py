"""All nodes of a process in one table, and which of two processes' nodes belong together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foundry.model import NONE, Graph, NodeType, Process
from foundry.model.tables import NODE, Table, padded_sizes, starts

Index = npt.NDArray[np.int64]
OWNERS = {
    "kernel": (NodeType.KERNEL,),
    "memset": (NodeType.MEMSET,),
    "copy": (NodeType.MEMCPY,),
    "child": (NodeType.GRAPH,),
    "event": (NodeType.EVENT_RECORD, NodeType.WAIT_EVENT),
}


class Flat:
    """The nodes of all bodies of a process, one after the other."""

    def __init__(self, process: Process, kernels: npt.NDArray[np.int64]) -> None:
        self.process = process
        tables = [process.groups[group].nodes for group in process.bodies.tolist()]
        self.nodes: Table = np.concatenate([np.zeros(0, NODE), *tables])
        self.first: Index = starts(np.array([len(table) for table in tables], np.int64))
        self.kernel: Index = kernels[np.minimum(self.nodes["kernel"], len(kernels) - 1)]

    @cached_property
    def _rows(self) -> dict[str, tuple[npt.NDArray[np.bool_], Index]]:
        good = self.nodes["reason"] == NONE
        found = {}
        for name, kinds in OWNERS.items():
            mask = np.isin(self.nodes["type"], kinds) & good
            found[name] = mask, np.cumsum(mask) - 1
        return found

    def owns(self, name: str, nodes: Index) -> npt.NDArray[np.bool_]:
        """Tell which nodes own a row of that table."""
        mask: npt.NDArray[np.bool_] = self._rows[name][0][nodes]
        return mask

    def rows(self, name: str, nodes: Index) -> Index:
        """Give the rows that nodes own."""
        found: Index = self._rows[name][1][nodes]
        return found

    @cached_property
    def blocks(self) -> Index:
        """Where the parameter block of each kernel node's row starts, in words."""
        return starts(padded_sizes(self.nodes["parameter_size"][self._rows["kernel"][0]])) // 8

    def shape(self, body: int) -> Index:
        """Give what makes nodes of a body alike: their types and kernels."""
        begin, end = int(self.first[body]), int(self.first[body + 1])
        kinds = self.nodes["type"][begin:end].astype(np.int64) << 1 | (self.nodes["reason"][begin:end] != NONE)
        return np.stack([kinds, self.kernel[begin:end]])


@dataclass
class Stretch:
    """Consecutive nodes of two bodies that belong together. `place` names the graph and the path of child graphs."""

    place: str
    graph: int
    bodies: tuple[int, int]
    first: tuple[int, int]
    count: int


@dataclass
class Pairing:
    """Which graphs, bodies and nodes of two processes belong together."""

    graphs: list[tuple[int, int]] = field(default_factory=list)
    only: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    stretches: list[Stretch] = field(default_factory=list)
    bodies: list[tuple[str, int, int]] = field(default_factory=list)
    reshaped: list[tuple[str, tuple[int, int], tuple[int, int], int]] = field(default_factory=list)
    """Bodies with other nodes: place, bodies, how many nodes are left in the middle on each side, how many before."""

    def nodes(self, flats: tuple[Flat, Flat]) -> tuple[Index, Index, Index]:
        """Give the index of each node on both sides, and of its stretch."""
        counts = np.array([each.count for each in self.stretches], np.int64)
        within = np.arange(counts.sum()) - np.repeat(starts(counts)[:-1], counts)
        sides = []
        for side in (0, 1):
            first = [int(flats[side].first[each.bodies[side]]) + each.first[side] for each in self.stretches]
            sides.append(np.repeat(np.array(first, np.int64), counts) + within)
        return sides[0], sides[1], np.repeat(np.arange(len(counts)), counts)


def pair(where: str, left: Flat, right: Flat) -> Pairing:
    """Pair graphs by set and key, then their nodes in order, then child graphs."""
    found = Pairing()
    others = {(graph.set, graph.key): index for index, graph in enumerate(right.process.graphs)}
    for index, graph in enumerate(left.process.graphs):
        partner = others.pop((graph.set, graph.key), None)
        if partner is None:
            found.only[0].append(index)
            continue
        found.graphs.append((index, partner))
        place = f"{where}: graph {graph_name(graph)}"
        waiting = [(place, graph.body, right.process.graphs[partner].body)]
        while waiting:
            waiting += _pair_bodies(found, (left, right), index, *waiting.pop())
    found.only[1].extend(others.values())
    return found


def graph_name(graph: Graph) -> str:
    """Name a graph by its set and key."""
    return f"{graph.set}/{graph.key}" if graph.set else graph.key


def _pair_bodies(
    found: Pairing, flats: tuple[Flat, Flat], graph: int, place: str, one: int, other: int
) -> Iterator[tuple[str, int, int]]:
    found.bodies.append((place, one, other))
    shapes = flats[0].shape(one), flats[1].shape(other)
    counts = shapes[0].shape[1], shapes[1].shape[1]
    begin, end = min(counts), 0
    if counts[0] != counts[1]:
        begin = _alike(*shapes)
        end = min(_alike(shapes[0][:, ::-1], shapes[1][:, ::-1]), min(counts) - begin)
        found.reshaped.append((place, (one, other), (counts[0] - begin - end, counts[1] - begin - end), begin))
    stretches = [Stretch(place, graph, (one, other), (0, 0), begin)]
    if end:
        stretches.append(Stretch(place, graph, (one, other), (counts[0] - end, counts[1] - end), end))
    for stretch in stretches:
        if stretch.count:
            found.stretches.append(stretch)
            yield from _children(flats, stretch)


def _children(flats: tuple[Flat, Flat], stretch: Stretch) -> Iterator[tuple[str, int, int]]:
    nodes = [
        np.arange(stretch.count) + int(flats[side].first[stretch.bodies[side]]) + stretch.first[side] for side in (0, 1)
    ]
    both = np.flatnonzero(flats[0].owns("child", nodes[0]) & flats[1].owns("child", nodes[1]))
    for at in both.tolist():
        bodies = [
            int(flats[side].process.children[flats[side].rows("child", nodes[side][at : at + 1])[0]]) for side in (0, 1)
        ]
        yield f"{stretch.place}: node {stretch.first[0] + at}", bodies[0], bodies[1]


def _alike(left: Index, right: Index) -> int:
    """Count how many columns from the first on are equal."""
    count = min(left.shape[1], right.shape[1])
    differs = (left[:, :count] != right[:, :count]).any(axis=0)
    return int(differs.argmax()) if differs.any() else count
