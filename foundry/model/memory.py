"""Devices, contexts and the memory of a process. Its allocations are a table, see `tables.ALLOCATION`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.model.constants import Arena
from foundry.model.tables import Table

PAGE = 2 << 20
LARGEST_ADDRESS = 1 << 57


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU as the process saw it, and the address range that the hook reserved on it."""

    ordinal: int
    name: str
    uuid: bytes
    compute_major: int
    compute_minor: int
    multiprocessors: int
    total_memory: int
    flags: int
    base: int
    arena_size: int

    @property
    def sound_range(self) -> bool:
        """Whether its range is one of whole pages below the limit, or there is none."""
        whole = self.base % PAGE == 0 and self.arena_size % PAGE == 0
        within = self.base + len(Arena) * self.arena_size <= LARGEST_ADDRESS
        return whole and within and (not self.base) == (not self.arena_size)

    def arena(self, address: int) -> Arena | None:
        """Tell the arena that the address lies in, if it is one of this device."""
        if not self.arena_size or address < self.base:
            return None
        index = (address - self.base) // self.arena_size
        return Arena(index) if index < len(Arena) else None


def placed(allocations: Table, devices: Sequence[Device]) -> npt.NDArray[np.bool_]:
    """Tell which allocations have a size and lie whole in the arena that they name, of the device that they name."""
    good = np.zeros(len(allocations), np.bool_)
    for device in devices:
        size = np.maximum(allocations["size"], allocations["taken"])
        offset = allocations["address"] - np.uint64(device.base)
        arena = allocations["arena"].astype(np.uint64)
        length = np.uint64(device.arena_size)
        inside = (offset >= arena * length) & (size <= length) & (offset <= arena * length + length - size)
        known = (allocations["device"] == device.ordinal) & (arena < len(Arena)) & (allocations["size"] > 0)
        good |= inside & known & (allocations["address"] >= np.uint64(device.base))
    return good


@dataclass(frozen=True, slots=True)
class Context:
    """A driver context: a device's primary one, or the ordinal-th that the process made on it."""

    device: int
    primary: bool
    ordinal: int


@dataclass(frozen=True, slots=True)
class Range:
    """Memory that the hook did not place. `address` is 0 where it is a host pointer, or where no graph points to it."""

    kind: int
    address: int
    size: int
    image: int
    name: str
    born: int
    died: int


@dataclass(frozen=True, slots=True)
class Contents:
    """Bytes of arena memory: what a restore fills it with."""

    address: int
    size: int
    blob: int


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the program between two steps; `end` is NONE if it never ended."""

    kind: int
    name: str
    begin: int
    end: int
