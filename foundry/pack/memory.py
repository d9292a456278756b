"""Allocations, ranges and phases with their lifetimes, in steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foundry.findings import ALLOCATION_RACE
from foundry.model import NONE, Arena, Phase, PhaseKind, Range, RangeKind
from foundry.model.restorable import Problem
from foundry.model.tables import ALLOCATION, Table, frozen
from foundry.pack.contents import Recorded
from foundry.pack.races import Allocators, racing
from foundry.spool import events


class Memory:
    """Folds the memory events of a process. `step` is the number of allocations, frees and graphs so far."""

    def __init__(self) -> None:
        self.step = 0
        self.ranges: list[Range] = []
        self.owners: list[int] = []
        self.phases: list[Phase] = []
        self.recorded = Recorded()
        self.allocators = Allocators()
        self.rows: list[list[int]] = []
        self._mains: list[int] = []
        self._live: dict[tuple[int, int], int] = {}
        self._live_ranges: dict[tuple[int, int], int] = {}
        self._open_phases: list[int] = []

    def tick(self) -> int:
        """Take the current step and go on to the next."""
        self.step += 1
        return self.step - 1

    def allocation(self, event: events.Allocation, thread: int) -> None:
        """Note a new allocation."""
        step = self.tick()
        place = (event.device, event.address)
        if place in self._live:
            self._end(self._live.pop(place), step, thread)
        self._live[place] = len(self.rows)
        if event.arena == Arena.MAIN:
            self._mains.append(len(self.rows))
            self.allocators.told += 1
        self.rows.append([*event[:3], event.ordinal, event.device, step, NONE, thread, 0, event.arena, event.origin])

    def free(self, event: events.Free, thread: int) -> None:
        """Note the end of an allocation."""
        step = self.tick()
        row = self._live.pop((event.device, event.address), None)
        if row is not None:
            self._end(row, step, thread)

    def _end(self, row: int, step: int, thread: int) -> None:
        self.rows[row][6], self.rows[row][8] = step, thread

    def contents(self, event: events.Contents) -> None:
        """Note what an allocation that stands holds."""
        found = (
            row
            for row in self._live.values()
            if self.rows[row][0] <= event.address < self.rows[row][0] + self.rows[row][1]
        )
        self.recorded.fold(event, next(found, None))

    def races(self, end: int) -> dict[int, Problem]:
        """Give the allocations before a step that another thread's may change places with, by row, with what to say."""
        before = [row for row in self._mains if self.rows[row][5] < end]
        entries = [(self.rows[row][4], self.rows[row][7], self.rows[row][1]) for row in before]
        found = {}
        for step in racing(entries, self.allocators):
            row = before[step]
            text = (
                f"memory (allocation {self.rows[row][3]} of {self.rows[row][1]} bytes by thread {self.rows[row][7]}) "
                "that may change places with another thread's in the next run"
            )
            found[row] = Problem(ALLOCATION_RACE, text)
        return found

    def range(self, event: events.Range, owner: int) -> None:
        """Note memory that the hook did not place; `owner` is the id of the image of a global."""
        place = (event.kind, event.address)
        if place in self._live_ranges:
            if event.kind == RangeKind.GLOBAL:
                return
            self.range_gone(events.RangeGone(event.kind, event.address))
        self._live_ranges[place] = len(self.ranges)
        self.owners.append(owner)
        self.ranges.append(Range(event.kind, event.address, event.size, NONE, event.name, self.step, NONE))

    def range_gone(self, event: events.RangeGone) -> None:
        """Note the end of such memory."""
        index = self._live_ranges.pop((event.kind, event.address), None)
        if index is not None:
            self.ranges[index] = replace(self.ranges[index], died=self.step)

    def owner_gone(self, owner: int) -> None:
        """End the globals of an image that was unloaded."""
        for (kind, address), index in list(self._live_ranges.items()):
            if kind == RangeKind.GLOBAL and self.owners[index] == owner:
                self.range_gone(events.RangeGone(kind, address))

    def phase(self, event: events.Phase) -> None:
        """Note a begin or an end; an end closes the innermost open phase of its kind and name."""
        if event.begin:
            self._open_phases.append(len(self.phases))
            self.phases.append(Phase(event.kind, event.name, self.step, NONE))
            return
        for index in reversed(self._open_phases):
            phase = self.phases[index]
            if phase.kind == event.kind and event.name in ("", phase.name):
                self.phases[index] = replace(phase, end=self.step)
                self._open_phases.remove(index)
                return

    def in_scratch(self) -> bool:
        """Tell whether a scratch phase is open: what happens in it a restore skips."""
        return any(self.phases[index].kind == PhaseKind.SCRATCH for index in self._open_phases)

    def table(self) -> Table:
        """Make the table of allocations."""
        order = ("address", "size", "taken", "ordinal", "device", "born", "died", "born_thread", "died_thread")
        table = np.zeros(len(self.rows), ALLOCATION)
        for index, name in enumerate((*order, "arena", "origin")):
            table[name] = [row[index] for row in self.rows]
        return frozen(table)

    def kept_ranges(self, image_ids: dict[int, int]) -> tuple[Range, ...]:
        """Give the ranges with their owners as ids of kept images."""
        return tuple(
            replace(item, image=image_ids.get(owner, NONE))
            for item, owner in zip(self.ranges, self.owners, strict=True)
        )
