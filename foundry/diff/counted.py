"""Values of many words and how often each occurs, in memory for the different ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]


class Counted:
    """Values that are added a part at a time."""

    def __init__(self) -> None:
        self._parts: list[tuple[U64, Index]] = []

    def add(self, values: U64, counts: Index | None = None) -> None:
        """Add values that occur so often each, or once."""
        if counts is None:
            self._parts.append(np.unique(values, return_counts=True))
        else:
            self._parts.append((values, counts))

    def all(self) -> tuple[U64, Index]:
        """Give the values in ascending order, each once, with their counts."""
        if not self._parts:
            return np.zeros(0, np.uint64), np.zeros(0, np.int64)
        values, counts = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        found, which = np.unique(values, return_inverse=True)
        sums = np.zeros(len(found), np.int64)
        np.add.at(sums, which.reshape(-1), counts)
        return found, sums
