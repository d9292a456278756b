"""Finds the stretch of a sequence that is one piece over and over, like the layers of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LONGEST_PIECE = 1024
FEWEST_TIMES = 3


@dataclass(frozen=True, slots=True)
class Repeat:
    """`sequence[start : start + times * piece]` is its first `piece` items, `times` times."""

    start: int
    piece: int
    times: int

    @property
    def end(self) -> int:
        """Index of the first item after it."""
        return self.start + self.piece * self.times


def longest_repeat(sequence: npt.NDArray[np.int64]) -> Repeat | None:
    """Find the repeat that covers most, of equals the one with the shortest piece; None if none is worth telling."""
    best: Repeat | None = None
    for piece in range(1, min(len(sequence) // FEWEST_TIMES, LONGEST_PIECE) + 1):
        same = sequence[piece:] == sequence[:-piece]
        start, length = _longest_run(same)
        times = length // piece + 1
        if times >= FEWEST_TIMES and (best is None or piece * times > best.piece * best.times):
            best = Repeat(start, piece, times)
    return best if best and best.piece * best.times >= 8 else None


def _longest_run(flags: npt.NDArray[np.bool_]) -> tuple[int, int]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    if not len(starts):
        return 0, 0
    at = int(np.argmax(ends - starts))
    return int(starts[at]), int(ends[at] - starts[at])
