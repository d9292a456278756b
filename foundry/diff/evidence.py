"""What the words that differ tell of the two processes: where their stacks, libraries and heaps lie, their guards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.diff.counted import Counted

Mask = npt.NDArray[np.bool_]
U64 = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]

HOST_LOW, HOST_END = 0x5500_0000_0000, 0x8000_0000_0000
"""Where Linux on x86-64 puts programs, heaps, libraries and stacks."""
SMALLEST_LOW_HALF = 1 << 16
"""Two packed 32-bit numbers with a small low one are no address: 28,672 beside 4 would look like a library's."""
SMALLEST_HEAP = 1 << 24
FEWEST_HEAP_PAIRS = 256
LARGEST_SCATTER = 1 << 25
OBJECT_ALIGNMENT, HEAP_ALIGNMENT = 8, 16
NEAR = 1 << 12
FLOAT_FRACTION = (1 << 23) - 1
ROUND = 512
"""Sizes and strides that large are multiples of this; few heap objects are at such addresses."""
SMALLEST_MOVE = 1 << 12
FEWEST_OF_TOPS = 16
FEWEST_GUARDS = 2
FACTORS = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))
"""Odd numbers without a pattern, to make one number of several."""

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
WORD_BITS, BYTE_BITS = np.uint64(16), np.uint64(8)
TOGETHER = 1 << 16
"""Words that are looked at at a time."""
_NOTHING = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Words:
    """Words that differ, in the order of nodes and offsets, without those that lie in no parameter of their kernel.

    `column` numbers a place of a kernel; `known` tells words that lie in memory that the driver knows, on either side;
    `position` is the word's place among all words, so that neighbours differ by one; `node` numbers its launch.
    """

    before: U64
    after: U64
    column: Index
    position: Index
    node: Index
    known: Mask

    def some(self, at: Index) -> Words:
        """Give only those words."""
        return Words(
            *(self.before[at], self.after[at], self.column[at]), self.position[at], self.node[at], self.known[at]
        )


@dataclass(frozen=True)
class Columns:
    """What there is to know of each column: does any of its words point to device memory; bytes of its parameter."""

    pointing: Mask
    parameter_bytes: Index
    parameter: Index


def looks_like_host(word: U64) -> Mask:
    """Tell which words look like addresses of the host."""
    inside: Mask = (word >= np.uint64(HOST_LOW)) & (word < np.uint64(HOST_END))
    inside &= (word & LOW) >= np.uint64(SMALLEST_LOW_HALF)
    return inside


class Evidence:
    """What the words that look like addresses on both sides tell of the two processes."""

    def __init__(self, words: Words) -> None:
        """Take all words in. `address` then tells those that look like addresses on both sides."""
        self.address = np.zeros(len(words.before), np.bool_)
        high, tops, moves = Counted(), Counted(), Counted()
        lows: list[tuple[U64, U64]] = []
        for at in range(0, len(words.before), TOGETHER):
            part = slice(at, at + TOGETHER)
            before, after, free = words.before[part], words.after[part], ~words.known[part]
            address = self.address[part] = looks_like_host(before) & looks_like_host(after) & free
            few = ~address & free & _in_low(before) & _in_low(after)
            lows.append((before[few], after[few]))
            before, after = before[address], after[address]
            high.add(packed(before >> HALF, after >> HALF))
            tops.add(packed((before & LOW) >> WORD_BITS, (after & LOW) >> WORD_BITS))
            moves.add((after - before) & LOW)
        values, _ = high.all()
        self._tops = values[_differ(values)]
        self._hosts = np.unique(values >> HALF), np.unique(values & LOW)
        far = np.uint64(SMALLEST_MOVE)
        values, _ = moves.all()
        self._moves = values[(values >= far) & (values <= LOW - far)]
        low = [np.concatenate([np.zeros(0, np.uint64), *side]) for side in zip(*lows, strict=True)] or 2 * [_NOTHING]
        self._heaps = self._find_heaps(*low)
        heap = self.in_heap(*low)
        self._objects = [np.unique(side[heap]) for side in low]
        self._guard = _find_guard(words)
        tops.add(packed(low[0][heap] >> WORD_BITS, low[1][heap] >> WORD_BITS))
        values, counts = tops.all()
        self._words_tops = values[(counts >= FEWEST_OF_TOPS) & _differ(values)]
        wider = Counted()
        wider.add(packed(values >> HALF >> BYTE_BITS, (values & LOW) >> BYTE_BITS), counts)
        values, counts = wider.all()
        self._bytes_tops = values[(counts >= FEWEST_OF_TOPS) & _differ(values)]

    @staticmethod
    def _find_heaps(left: U64, right: U64) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Find the span of the heap on each side: many values that all moved by about the same distance."""
        pairs = np.unique(packed(left, right))
        if len(pairs) < FEWEST_HEAP_PAIRS:
            return None
        before, after = (pairs >> HALF).astype(np.int64), (pairs & LOW).astype(np.int64)
        moves = after - before
        middle = int(np.median(moves))
        near = np.abs(moves - middle) < LARGEST_SCATTER
        if near.sum() * 2 < len(pairs) or abs(middle) < SMALLEST_MOVE:
            return None
        return (int(before[near].min()), int(before[near].max())), (int(after[near].min()), int(after[near].max()))

    def in_heap(self, before: U64, after: U64) -> Mask:
        """Tell which pairs lie in the heaps."""
        if self._heaps is None:
            return np.zeros(len(before), np.bool_)
        both = _between(before, self._heaps[0]) & _between(after, self._heaps[1])
        return both & _like_objects(before, after) & ~(_is_round(before) & _is_round(after))

    def moved(self, before: U64, after: U64) -> Mask:
        """Tell which words differ only in halves that moved as addresses did."""
        good = np.ones(len(before), np.bool_)
        for shift in (np.uint64(0), HALF):
            one, other = (before >> shift) & LOW, (after >> shift) & LOW
            good &= (one == other) | self._half(one, other)
        return good

    def _half(self, before: U64, after: U64) -> Mask:
        large = (before >= np.uint64(SMALLEST_LOW_HALF)) & (after >= np.uint64(SMALLEST_LOW_HALF))
        found = np.isin(packed(before, after), self._tops)
        found |= large & np.isin((after - before) & LOW, self._moves)
        found |= self.in_heap(before, after)
        for bits, tops in ((16, self._words_tops), (24, self._bytes_tops)):
            rest = (before ^ after) & np.uint64((1 << bits) - 1)
            shift = np.uint64(bits)
            alike = (rest == 0) & (before & np.uint64((1 << bits) - 1) > 0)
            found |= alike & np.isin(packed(before >> shift, after >> shift), tops)
        return found

    def moved_along(self, words: Words, columns: Columns, leftover: Mask) -> Mask:
        """Tell which round words of the heaps moved just as far as an object there in the same parameter did."""
        found = np.zeros(len(leftover), np.bool_)
        if self._heaps is None:
            return found
        both = _between(words.before, self._heaps[0]) & _between(words.after, self._heaps[1])
        found = both & ~leftover & _like_objects(words.before, words.after)
        key = words.node.astype(np.uint64) * FACTORS[0]
        key += columns.parameter[words.column].astype(np.uint64) * FACTORS[1]
        key += (words.after - words.before) * FACTORS[2]
        found[found] = np.isin(key[found], key[leftover])
        return found

    def near_objects(self, words: Words, leftover: Mask) -> Mask:
        """Tell which words have on one side an address of the heap near an object that the same launch holds."""
        found = np.zeros(len(leftover), np.bool_)
        if self._heaps is None or not leftover.any():
            return found
        for side, word in enumerate((words.before, words.after)):
            inside = _between(word, self._heaps[side]) & (word & np.uint64(OBJECT_ALIGNMENT - 1) == 0) & ~leftover
            at = np.flatnonzero(inside & ~_is_round(word))
            node = words.node.astype(np.uint64) << HALF
            objects = np.sort((node | word)[leftover])
            wanted = (node | word)[at]
            right = np.searchsorted(objects, wanted)
            above = objects[np.minimum(right, len(objects) - 1)] - wanted
            below = wanted - objects[np.maximum(right, 1) - 1]
            # Differences wrap where there is none on that side.
            found[at] |= (above < np.uint64(NEAR)) | (below < np.uint64(NEAR))
        return found

    def guards(self, words: Words) -> Mask:
        """Tell which words are the stack guard."""
        if self._guard is None:
            return np.zeros(len(words.before), np.bool_)
        both: Mask = (words.before == self._guard[0]) & (words.after == self._guard[1])
        return both

    def one_sided(self, before: U64, after: U64) -> Mask:
        """Tell which words are an address by the evidence on one side at least."""
        return self._by_evidence(before, 0) | self._by_evidence(after, 1)

    def _by_evidence(self, word: U64, side: int) -> Mask:
        found = looks_like_host(word) & np.isin(word >> HALF, self._hosts[side])
        if self._guard is not None and self._guard[2] >= FEWEST_GUARDS:
            found |= word == self._guard[side]
        return found | np.isin(word, self._objects[side])


def _find_guard(words: Words) -> tuple[np.uint64, np.uint64, int] | None:
    """Find the two values of the stack guard, of which there is one pair, and how often they occur."""
    candidates = np.flatnonzero(((words.before | words.after) & np.uint64(0xFF) == 0) & ~words.known)
    for word in (words.before, words.after):
        inner = word[candidates].view(np.uint8).reshape(-1, 8)
        candidates = candidates[(inner[:, 1:] != 0).all(axis=1)]
    if not len(candidates):
        return None
    before, after = words.before[candidates], words.after[candidates]
    values, counts = np.unique(before, return_counts=True)
    guard = values[counts.argmax()]
    partners = np.unique(after[before == guard])
    return (guard, partners[0], int(counts.max())) if len(partners) == 1 else None


def _differ(pairs: U64) -> Mask:
    """Tell which packed pairs are of two values."""
    found: Mask = (pairs >> HALF) != (pairs & LOW)
    return found


def packed(before: U64, after: U64) -> U64:
    """Give pairs of values below 2^32 as one number each."""
    pairs: U64 = (before << HALF) | after
    return pairs


def _in_low(word: U64) -> Mask:
    inside: Mask = (word >= np.uint64(SMALLEST_HEAP)) & (word <= LOW)
    return inside


def _between(word: U64, span: tuple[int, int]) -> Mask:
    inside: Mask = (word >= np.uint64(span[0])) & (word <= np.uint64(span[1]))
    return inside


def _like_objects(before: U64, after: U64) -> Mask:
    """Tell which pairs may be objects of a heap: such are aligned alike. A float that doubled is no such pair."""
    aligned: Mask = (before | after) & np.uint64(OBJECT_ALIGNMENT - 1) == 0
    differ = before ^ after
    aligned &= (differ & np.uint64(HEAP_ALIGNMENT - 1) == 0) & (differ & np.uint64(FLOAT_FRACTION) != 0)
    return aligned


def _is_round(word: U64) -> Mask:
    round_ones: Mask = word % np.uint64(ROUND) == 0
    return round_ones
