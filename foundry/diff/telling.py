"""Makes changes of pairs of nodes that differ: those of a graph and kernel that are alike are one, with a count."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from foundry.describe.parameters import POINTING
from foundry.describe.targets import Targets
from foundry.diff.flat import Flat, Index, Pairing
from foundry.diff.kernels import kernel_name
from foundry.diff.report import Change, Kind, Report, Strength
from foundry.model import NONE, Kernel

Tell = Callable[[int, int], str]
"""Describes one side (0 or 1) of a pair of nodes, by the pair's index."""
MOST_REMEMBERED = 8
MOST_COUNTED = 1 << 22
"""Keys below this are counted, above it sorted."""
LARGEST_PLAIN = 1 << 32


class Telling:
    """The pairs of nodes of two processes, with what names them."""

    def __init__(self, report: Report, flats: tuple[Flat, Flat], pairing: Pairing) -> None:
        self._report, self._flats, self._pairing = report, flats, pairing
        before, after, self.stretch = pairing.nodes(flats)
        self.nodes = before, after
        partner = dict(pairing.graphs)
        graphs = [each.graph for each in pairing.stretches]
        self.graphs = (
            np.array(graphs, np.int64)[self.stretch],
            np.array([partner[graph] for graph in graphs], np.int64)[self.stretch],
        )
        self._targets = lru_cache(MOST_REMEMBERED)(self._targets_of)

    def tell(
        self,
        differs: npt.NDArray[np.bool_],
        what: str,
        look: Tell,
        *,
        kind: Kind = Kind.NODES,
        strength: Strength = Strength.DIFFERENT,
    ) -> None:
        """Add the changes of the pairs that differ."""
        at = np.flatnonzero(differs)
        if not len(at):
            return
        kernels = self._flats[0].kernel[self.nodes[0][at]]
        for pair, count in self.grouped(self.stretch[at] * (int(kernels.max()) + 2) + kernels + 1, kind, strength):
            index = int(at[pair])
            name = self.kernel(index)
            told = f"{name}: {what}" if name else what
            change = Change(kind, self.where(index, count), told, look(0, index), look(1, index), strength, count)
            self._report.add([change])

    def grouped(self, key: Index, kind: Kind, strength: Strength) -> list[tuple[int, int]]:
        """Give the first of those with the same key, and how many they are, as many groups as the report takes."""
        if not len(key):
            return []
        first, counts = _groups(key)
        order = np.argsort(first)[: self._report.room(kind, strength, len(first))]
        return list(zip(first[order].tolist(), counts[order].tolist(), strict=True))

    def kernel(self, pair: int) -> str:
        """Name the kernel of a node; empty if it has none."""
        found = self.kernel_of(pair)
        return kernel_name(found.name) if found else ""

    def kernel_of(self, pair: int) -> Kernel | None:
        """Give the kernel of a node."""
        index = int(self._flats[0].nodes["kernel"][self.nodes[0][pair]])
        return self._flats[0].process.kernels[index] if index != NONE else None

    def where(self, pair: int, count: int = 1) -> str:
        """Name the place of a node."""
        stretch = self._pairing.stretches[int(self.stretch[pair])]
        number = int(self.nodes[0][pair]) - int(self._flats[0].first[stretch.bodies[0]])
        return f"{stretch.place}: node {number}" + (f" and {count - 1:,} more" if count > 1 else "")

    def pointer(self, side: int, pair: int, word: int) -> str:
        """Describe a word of 8 bytes by what it points to, if it does."""
        target = self._targets(side, int(self.graphs[side][pair])).of(word)
        return f"{word:#x}, {target['text']}" if target["kind"] in POINTING else spelled(word)

    def _targets_of(self, side: int, graph: int) -> Targets:
        process = self._flats[side].process
        return Targets(process, process.graphs[graph].step)


def _groups(key: Index) -> tuple[Index, Index]:
    """Find where each key occurs first, and how often it occurs."""
    if int(key.max()) >= MOST_COUNTED:
        _, first, counts = np.unique(key, return_index=True, return_counts=True)
        return first, counts
    counts = np.bincount(key)
    first = np.zeros(len(counts), np.int64)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    there = np.flatnonzero(counts)
    return first[there], counts[there]


def spelled(value: int) -> str:
    """Write a number: small ones as such, large ones as a word."""
    return f"{value:,}" if value < LARGEST_PLAIN else f"{value:#x}"
