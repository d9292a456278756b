"""What words point to, for many words of many graphs at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from foundry.diff.flat import Index
from foundry.model import Arena, Process
from foundry.model.pointers import in_arenas, live_allocations

U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
MOST_REMEMBERED = 64


@dataclass
class Spots:
    """Where words lie: device and arena, then the ordinal of the allocation there or -1, and the offset in it.

    Where none stood, the offset is that in the arena.
    """

    inside: Mask
    device: Index
    arena: Index
    ordinal: Index
    offset: U64

    def alike(self, other: Spots) -> Mask:
        """Tell which words of both sides lie in the same place of their arenas."""
        same: Mask = self.inside & other.inside & (self.device == other.device) & (self.arena == other.arena)
        same &= (self.ordinal == other.ordinal) & (self.offset == other.offset)
        return same


class Places:
    """Looks words up in the memory of a process as it stood when their graphs were made."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._live = lru_cache(MOST_REMEMBERED)(lambda step: live_allocations(process, step))
        self._ranges = [
            (item.address, max(item.size, 1), item.born, item.died) for item in process.ranges if item.address
        ]

    def placed(self, words: U64) -> Mask:
        """Tell which words lie in an arena."""
        return in_arenas(words, self.process.devices)

    def known(self, words: U64) -> Mask:
        """Tell which words lie in an arena, or in other memory that the driver knew at some time."""
        found = in_arenas(words, self.process.devices)
        for address, size, _, _ in self._ranges:
            found |= (words - np.uint64(address)) < np.uint64(size)
        return found

    def spots(self, words: U64, graphs: Index) -> Spots:
        """Find the spot of each word, as its graph (an index of the process's) found it."""
        count = len(words)
        found = Spots(
            np.zeros(count, np.bool_),
            np.full(count, -1),
            np.full(count, -1),
            np.full(count, -1),
            np.zeros(count, "<u8"),
        )
        for device in self.process.devices:
            offset = words - np.uint64(device.base)
            inside = offset < np.uint64(device.arena_size * len(Arena))
            if inside.any():
                length = np.uint64(device.arena_size)
                found.inside |= inside
                found.device[inside] = device.ordinal
                found.arena[inside] = (offset[inside] // length).astype(np.int64)
                found.offset[inside] = offset[inside] % length
        self._allocations(words, graphs, found)
        return found

    def _allocations(self, words: U64, graphs: Index, found: Spots) -> None:
        at = np.flatnonzero(found.inside)
        at = at[np.argsort(graphs[at], kind="stable")]
        table = self.process.allocations
        numbers, first = np.unique(graphs[at], return_index=True)
        for graph, part in zip(numbers.tolist(), np.split(at, first[1:]) if len(at) else [], strict=True):
            live = self._live(self.process.graphs[graph].step)
            if not len(live):
                continue
            address = table["address"][live]
            near = np.maximum(np.searchsorted(address, words[part], side="right") - 1, 0)
            delta = words[part] - address[near]
            hit = delta < table["taken"][live][near]
            found.ordinal[part[hit]] = table["ordinal"][live[near[hit]]].astype(np.int64)
            found.offset[part[hit]] = delta[hit]
