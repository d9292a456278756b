"""Which words differ by what the capturing process left in them, not by what the program wrote.

Libraries pass structs by value whose padding and unused slots hold whatever stood on the stack. Nothing in a capture
proves that a kernel never reads such a word, so this is a judgement by looks, made of evidence from all words that
differ. A word in memory that the driver knows is never judged so, on either side.

- ADDRESS: both sides look like addresses of the host's stack, heap or libraries.
- PART: 4-byte halves, or the high bytes of one, that differ just as those of such addresses do: address
  randomisation moves all of a mapping by the same distance, so the pairs are few, and a number does not meet them.
- HEAP: both sides lie in the heap of a program at a fixed address, below 4 GiB, where the evidence shows such a heap.
- ONE_SIDE: one side is an address by the evidence, whatever the other is: a slot that nobody wrote.
- GUARD: the stack guard of the C library: seven random bytes above a zero, the same pair wherever it stands.
- COLUMN: most differing words at this place of this kernel are leftovers by their own look, and none of its words
  points to device memory on either side.
- BESIDE: in a parameter of a kilobyte or more, a list whose slots are mostly leftovers, right beside one of them; a
  small number only between two.
- EMPTY: a parameter of one byte, an address's low one by its look: C++ passes structs without members so.
- REPEATED: the same two values as a leftover elsewhere, too large to meet by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

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
ROUND = 512
"""Sizes and strides that large are multiples of this; few heap objects are at such addresses."""
SMALLEST_REPEATED = 1 << 24
SMALLEST_MOVE = 1 << 12
FEWEST_OF_TOPS = 16
LIST_BYTES = 1024
SMALLEST_BESIDE = 1 << 12

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


class Leftover(IntEnum):
    """Why a word is judged to be left over; NONE is a real difference."""

    NONE = 0
    ADDRESS = 1
    PART = 2
    HEAP = 3
    ONE_SIDE = 4
    GUARD = 5
    COLUMN = 6
    BESIDE = 7
    EMPTY = 8
    REPEATED = 9


@dataclass(frozen=True)
class Words:
    """Words that differ, in the order of nodes and offsets, without those that lie in no parameter of their kernel.

    `column` numbers a place of a kernel; `known` tells words that lie in memory that the driver knows, on either side;
    `position` is the word's place among all words, so that neighbours differ by one.
    """

    before: U64
    after: U64
    column: Index
    position: Index
    known: Mask

    def some(self, at: Index) -> Words:
        """Give only those words."""
        return Words(self.before[at], self.after[at], self.column[at], self.position[at], self.known[at])


Rule = Callable[[Words], Mask]


@dataclass(frozen=True)
class Columns:
    """What there is to know of each column: does any of its words point to device memory; bytes of its parameter."""

    pointing: Mask
    parameter_bytes: Index
    parameter: Index


def judge(words: Words, columns: Columns) -> npt.NDArray[np.uint8]:
    """Give the reason of each word to be left over."""
    found = np.zeros(len(words.before), np.uint8)
    evidence = _Evidence(words)
    rules: tuple[tuple[Leftover, Rule], ...] = (
        (Leftover.ADDRESS, lambda some: looks_like_host(some.before) & looks_like_host(some.after)),
        (Leftover.HEAP, lambda some: evidence.in_heap(some.before, some.after)),
        (Leftover.PART, lambda some: evidence.moved(some.before, some.after)),
        (Leftover.GUARD, _guards),
        (Leftover.ONE_SIDE, lambda some: evidence.one_sided(some.before, some.after)),
        (Leftover.EMPTY, lambda some: _empty(some, columns)),
    )
    left = np.flatnonzero(~words.known)
    for reason, rule in rules:
        hit = rule(words.some(left))
        found[left[hit]] = reason
        left = left[~hit]
    if not len(left):
        return found
    free = ~words.known
    found[_columns(words, columns, found > 0) & free & (found == 0)] = Leftover.COLUMN
    found[_repeated(words, found > 0) & free & (found == 0)] = Leftover.REPEATED
    # What is beside a leftover of the list may have another beside it.
    while (more := _beside(words, columns, found > 0) & free & (found == 0)).any():
        found[more] = Leftover.BESIDE
    found[_repeated(words, found > 0) & free & (found == 0)] = Leftover.REPEATED
    return found


def looks_like_host(word: U64) -> Mask:
    """Tell which words look like addresses of the host."""
    inside: Mask = (word >= np.uint64(HOST_LOW)) & (word < np.uint64(HOST_END))
    inside &= (word & _LOW) >= np.uint64(SMALLEST_LOW_HALF)
    return inside


class _Evidence:
    """What the words that look like addresses on both sides tell of the two processes."""

    def __init__(self, words: Words) -> None:
        address = looks_like_host(words.before) & looks_like_host(words.after) & ~words.known
        before, after = words.before[address], words.after[address]
        self._tops = _pairs(before >> _HALF, after >> _HALF)
        far = np.uint64(SMALLEST_MOVE)
        moves = np.unique((after - before) & _LOW)
        self._moves = moves[(moves >= far) & (moves <= _LOW - far)]
        self._hosts = np.unique(before >> _HALF), np.unique(after >> _HALF)
        few = ~address & ~words.known & _in_low(words.before) & _in_low(words.after)
        low = words.before[few], words.after[few]
        self._heaps = self._find_heaps(*low)
        heap = self.in_heap(*low)
        sides = [np.concatenate([one & _LOW, other[heap]]) for one, other in zip((before, after), low, strict=True)]
        self._words_tops, self._bytes_tops = (
            _pairs(sides[0] >> np.uint64(bits), sides[1] >> np.uint64(bits), FEWEST_OF_TOPS) for bits in (16, 24)
        )

    @staticmethod
    def _find_heaps(left: U64, right: U64) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Find the span of the heap on each side: many values that all moved by about the same distance."""
        pairs = np.unique(_packed(left, right))
        if len(pairs) < FEWEST_HEAP_PAIRS:
            return None
        before, after = (pairs >> _HALF).astype(np.int64), (pairs & _LOW).astype(np.int64)
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
        return both & ~(_is_round(before) & _is_round(after))

    def moved(self, before: U64, after: U64) -> Mask:
        """Tell which words differ only in halves that moved as addresses did."""
        good = np.ones(len(before), np.bool_)
        for shift in (np.uint64(0), _HALF):
            one, other = (before >> shift) & _LOW, (after >> shift) & _LOW
            good &= (one == other) | self._half(one, other)
        return good

    def _half(self, before: U64, after: U64) -> Mask:
        large = (before >= np.uint64(SMALLEST_LOW_HALF)) & (after >= np.uint64(SMALLEST_LOW_HALF))
        found = np.isin(_packed(before, after), self._tops)
        found |= large & np.isin((after - before) & _LOW, self._moves)
        found |= self.in_heap(before, after)
        for bits, tops in ((16, self._words_tops), (24, self._bytes_tops)):
            rest = (before ^ after) & np.uint64((1 << bits) - 1)
            shift = np.uint64(bits)
            alike = (rest == 0) & (before & np.uint64((1 << bits) - 1) > 0)
            found |= alike & np.isin(_packed(before >> shift, after >> shift), tops)
        return found

    def one_sided(self, before: U64, after: U64) -> Mask:
        """Tell which words are an address by the evidence on one side at least."""
        return self._by_evidence(before, 0) | self._by_evidence(after, 1)

    def _by_evidence(self, word: U64, side: int) -> Mask:
        found = looks_like_host(word) & np.isin(word >> _HALF, self._hosts[side])
        if self._heaps is not None:
            found |= _between(word, self._heaps[side]) & ~_is_round(word)
        return found


def _guards(words: Words) -> Mask:
    """Tell which words are the stack guard, of which there is one pair."""
    pair = []
    for word in (words.before, words.after):
        inner = word.view(np.uint8).reshape(-1, 8)
        pair.append((inner[:, 0] == 0) & (inner[:, 1:] != 0).all(axis=1))
    candidates: Mask = pair[0] & pair[1]
    if not candidates.any():
        return candidates
    values, counts = np.unique(words.before[candidates], return_counts=True)
    guard = values[counts.argmax()]
    partners = np.unique(words.after[candidates & (words.before == guard)])
    candidates &= (words.before == guard) & (len(partners) == 1)
    return candidates


def _columns(words: Words, columns: Columns, by_look: Mask) -> Mask:
    """Tell which words stand in columns of leftovers."""
    count = len(columns.pointing)
    differing = np.bincount(words.column, minlength=count)
    leftovers = np.bincount(words.column[by_look], minlength=count)
    good = (leftovers > 0) & (leftovers * 2 >= differing) & ~columns.pointing
    picked: Mask = good[words.column]
    return picked


def _beside(words: Words, columns: Columns, leftover: Mask) -> Mask:
    """Tell which words stand right beside a leftover in a list of which most differing words are leftovers."""
    parameter = columns.parameter[words.column]
    beside = np.zeros(len(leftover), np.bool_)
    if not len(leftover):
        return beside
    next_to = (np.diff(words.position) == 1) & (parameter[1:] == parameter[:-1])
    between = np.zeros(len(leftover), np.bool_)
    beside[1:] |= next_to & leftover[:-1]
    between[:-1] = next_to & leftover[1:] & beside[:-1]
    beside[:-1] |= next_to & leftover[1:]
    lists = columns.parameter_bytes[words.column] >= LIST_BYTES
    count = int(parameter.max()) + 1
    share = np.bincount(parameter[leftover], minlength=count) * 4 >= np.bincount(parameter, minlength=count) * 3
    large = (words.before >= np.uint64(SMALLEST_BESIDE)) & (words.after >= np.uint64(SMALLEST_BESIDE))
    good: Mask = ((beside & large) | between) & lists & share[parameter]
    return good


def _empty(words: Words, columns: Columns) -> Mask:
    """Tell which words differ in a parameter of one byte that looks like the low byte of an address."""
    found: Mask = columns.parameter_bytes[words.column] == 1
    differ = words.before ^ words.after
    good = np.zeros(len(differ), np.bool_)
    for at in range(8):
        before, after = ((side >> np.uint64(8 * at)) & np.uint64(0xFF) for side in (words.before, words.after))
        aligned = (before >= 16) & (after >= 16) & ((before | after) & np.uint64(7) == 0)
        good |= aligned & (differ == (before ^ after) << np.uint64(8 * at))
    return found & good


def _repeated(words: Words, leftover: Mask) -> Mask:
    """Tell which words, or halves of words, are the same two values as a leftover elsewhere."""
    found = np.zeros(len(leftover), np.bool_)
    large = (words.before >= np.uint64(SMALLEST_REPEATED)) & (words.after >= np.uint64(SMALLEST_REPEATED))
    open_words = np.flatnonzero(~leftover & large)
    if not len(open_words):
        return found
    halves: Callable[[U64, int], U64] = lambda word, at: (word >> np.uint64(32 * at)) & _LOW  # noqa: E731
    known = np.unique(
        np.concatenate(
            [_packed(halves(words.before[leftover], at), halves(words.after[leftover], at)) for at in (0, 1)]
        )
    )
    good = np.ones(len(open_words), np.bool_)
    for at in (0, 1):
        before, after = halves(words.before[open_words], at), halves(words.after[open_words], at)
        big = (before >= np.uint64(SMALLEST_REPEATED)) & (after >= np.uint64(SMALLEST_REPEATED))
        good &= (before == after) | (big & np.isin(_packed(before, after), known))
    found[open_words[good]] = True
    return found


def _pairs(before: U64, after: U64, fewest: int = 1) -> U64:
    """Give the pairs of values below 2^32 that occur so often and differ."""
    values, counts = np.unique(_packed(before, after), return_counts=True)
    kept: U64 = values[(counts >= fewest) & ((values >> _HALF) != (values & _LOW))]
    return kept


def _packed(before: U64, after: U64) -> U64:
    packed: U64 = (before << _HALF) | after
    return packed


def _in_low(word: U64) -> Mask:
    inside: Mask = (word >= np.uint64(SMALLEST_HEAP)) & (word <= _LOW)
    return inside


def _between(word: U64, span: tuple[int, int]) -> Mask:
    inside: Mask = (word >= np.uint64(span[0])) & (word <= np.uint64(span[1]))
    return inside


def _is_round(word: U64) -> Mask:
    round_ones: Mask = word % np.uint64(ROUND) == 0
    return round_ones
