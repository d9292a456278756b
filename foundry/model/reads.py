"""Which bytes of its parameters each launch can read, as its kernel's code tells. What is not known counts as read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

WORD = 8
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
ADDRESS = np.uint64(0x0000_FFFF_FFFF_FFFF)
"""The bytes of a word without which nobody has an address: it is of 48 bits or more."""

U64 = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Reads:
    """For each kernel node of a process, over all bodies in order, which bits of its block of parameters it can read.

    Nodes that read the same bytes share a pattern, -1 stands for all bytes. `words` are those of all patterns, one
    after the other; `first` tells where each begins. `absent` tells nodes whose code was not at hand: they count as
    reading everything, but nobody knows.
    """

    words: U64
    first: Index
    pattern: Index
    absent: Bits

    @classmethod
    def build(cls, masks: Sequence[Bits], pattern: Index, absent: Bits) -> Reads:
        """Make it of the bytes of each pattern."""
        words, first = [np.zeros(0, "<u8")], [0]
        for mask in masks:
            padded = np.full(-(-len(mask) // WORD) * WORD, 0xFF, np.uint8)
            padded[: len(mask)][~mask] = 0
            words.append(padded.view("<u8"))
            first.append(first[-1] + len(words[-1]))
        return cls(np.concatenate(words), np.array(first, np.int64), pattern, absent)

    @classmethod
    def everything(cls, rows: int) -> Reads:
        """Make that of nodes of which nothing is known."""
        return cls.build([], np.full(rows, -1), np.ones(rows, np.bool_))

    def at(self, rows: Index, offsets: Index) -> U64:
        """Give the bits that are read of 8 bytes at any offset in the blocks of these nodes."""
        low = self._of(rows, offsets // WORD)
        shift = ((offsets % WORD) * 8).astype(np.uint64)
        odd = np.flatnonzero(shift)
        if len(odd):
            high = self._of(rows[odd], offsets[odd] // WORD + 1)
            low[odd] = low[odd] >> shift[odd] | high << (np.uint64(64) - shift[odd])
        return low

    def _of(self, rows: Index, words: Index) -> U64:
        found = np.full(len(rows), ALL)
        pattern = self.pattern[rows]
        known = np.flatnonzero(pattern >= 0)
        at = self.first[pattern[known]] + words[known]
        inside = at < self.first[pattern[known] + 1]
        found[known[inside]] = self.words[at[inside]]
        return found


def may_be_address(bits: U64) -> Bits:
    """Tell which words may be an address to their kernel, by the bits of them that it reads."""
    found: Bits = (bits & ADDRESS) == ADDRESS
    return found
