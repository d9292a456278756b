"""Allocations of the main arena that another thread's may change places with in the next run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

from foundry.spool import events

SHARED_ORDINAL = 65534
"""Of all threads beyond so many: whose is whose is not known."""


@dataclass(slots=True)
class Allocators:
    """What is known of the order in which threads allocate. Steps are numbers of main allocations told."""

    told: int = 0
    born: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)

    def fold(self, event: events.Allocator) -> None:
        """Take a thread's coming or end into account."""
        if event.ended:
            self.ended[event.thread] = self.told
        else:
            self.born[event.thread] = event.before


def racing(entries: Sequence[tuple[int, int, int]], allocators: Allocators) -> set[int]:
    """Give the steps of allocations that may change places: (device, thread, size) of each main allocation, in order.

    If a restore sees the same sequence of allocations and frees as the capture, an allocation that is another one there
    has changed places with one of the same size, of another thread, that nothing puts in order with it.
    """
    alike: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for step, (device, thread, size) in enumerate(entries):
        alike[device, size][thread].append(step)
    found: set[int] = set()
    for by_thread in alike.values():
        for first, second in permutations(by_thread, 2):
            found |= _pairs(by_thread[first], by_thread[second], first, second, allocators)
        found.update(by_thread.get(SHARED_ORDINAL, []))
    return found


def _pairs(ours: list[int], theirs: list[int], first: int, second: int, known: Allocators) -> set[int]:
    """Give the steps of both threads that are in a pair of which ours came first and need not have."""
    shared = SHARED_ORDINAL in (first, second)
    end = len(theirs) if shared else bisect_left(theirs, known.ended.get(first, theirs[-1] + 1))
    begin = 0 if shared else bisect_left(ours, known.born.get(second, 0))
    open_theirs, open_ours = theirs[:end], ours[begin:]
    if not open_theirs or not open_ours:
        return set()
    last, earliest = open_theirs[-1], open_ours[0]
    return {step for step in open_ours if step < last} | set(open_theirs[bisect_right(open_theirs, earliest) :])
