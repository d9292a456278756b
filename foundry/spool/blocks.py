"""Where the parameter blocks of a file's graphs are put: most of what it holds, so they are not moved again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from foundry.model.tables import Bytes, frozen


class Blocks:
    """One piece of memory for the blocks of all bodies, in the order in which they are read."""

    def __init__(self, room: int) -> None:
        """Take as much as the file has bytes: a block with its filling is shorter than its node."""
        self._memory = np.empty(room, np.uint8).data
        self._used = 0

    def add(self, blocks: Iterable[bytes]) -> memoryview:
        """Put blocks behind those that are there."""
        joined = b"".join(blocks)
        begin, self._used = self._used, self._used + len(joined)
        place = self._memory[begin : self._used]
        place[:] = joined
        return place


def joined(parts: Sequence[memoryview]) -> Bytes:
    """Give all parts one after the other, without a copy if that is how they lie in one piece of memory."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return frozen(np.zeros(0, np.uint8))
    arrays = [np.frombuffer(part, np.uint8) for part in filled]
    whole = np.frombuffer(memoryview(filled[0].obj), np.uint8)
    begin = end = _address(arrays[0]) - _address(whole)
    for array in arrays:
        if _address(array) - _address(whole) != end:
            return frozen(np.concatenate(arrays))
        end += len(array)
    return frozen(whole[begin:end])


def _address(array: Bytes) -> int:
    return int(array.__array_interface__["data"][0])
