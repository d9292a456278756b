"""Which words differ by what the capturing process left in them, not by what the program wrote.

Libraries pass structs by value whose padding and unused slots hold whatever stood on the stack. Nothing in a capture
proves that a kernel never reads such a word, so this is a judgement by looks, made of evidence from all words that
differ. A word in memory that the driver knows is never judged so, on either side.

- ADDRESS: both sides look like addresses of the host's stack, heap or libraries.
- PART: 4-byte halves, or the high bytes of one, that differ just as those of such addresses do: address
  randomisation moves all of a mapping by the same distance, so the pairs are few, and a number does not meet them.
- HEAP: both sides lie in the heap of a program at a fixed address, below 4 GiB, where the evidence shows such a heap,
  at addresses as objects have them; round ones only if they moved just as far as objects of that parameter did.
- ONE_SIDE: one side is an address by the evidence, the stack guard, or in the heap near an object that the launch holds
  elsewhere, whatever the other is: a slot that nobody wrote.
- GUARD: the stack guard of the C library: seven random bytes above a zero, the same pair wherever it stands.
- COLUMN: most differing words at this place of this kernel are leftovers by their own look, and none of its words
  points to device memory on either side.
- BESIDE: in a parameter of a kilobyte or more, a list whose slots are mostly leftovers, right beside one of them; a
  small number only between two.
- EMPTY: a parameter of one byte, an address's low one by its look: C++ passes structs without members so.
- REPEATED: the same two values as a leftover elsewhere, too large to meet by chance.

`alike.py` judges what these leave, by the other launches of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from foundry.diff.evidence import LOW, U64, Columns, Evidence, Mask, Words, packed

SMALLEST_REPEATED = 1 << 24
LIST_BYTES = 1024
SMALLEST_BESIDE = 1 << 12


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
    LIKE = 10
    FRESH = 11
    STRAY = 12
    HEMMED = 13


Rule = Callable[[Words], Mask]


def judge(words: Words, columns: Columns) -> npt.NDArray[np.uint8]:
    """Give the reason of each word to be left over."""
    found = np.zeros(len(words.before), np.uint8)
    evidence = Evidence(words)
    rules: tuple[tuple[Leftover, Rule], ...] = (
        (Leftover.HEAP, lambda some: evidence.in_heap(some.before, some.after)),
        (Leftover.PART, lambda some: evidence.moved(some.before, some.after)),
        (Leftover.GUARD, evidence.guards),
        (Leftover.ONE_SIDE, lambda some: evidence.one_sided(some.before, some.after)),
        (Leftover.EMPTY, lambda some: _empty(some, columns)),
    )
    found[evidence.address] = Leftover.ADDRESS
    left = np.flatnonzero(~words.known & ~evidence.address)
    for reason, rule in rules:
        hit = rule(words.some(left))
        found[left[hit]] = reason
        left = left[~hit]
    if not len(left):
        return found
    free = ~words.known
    found[evidence.moved_along(words, columns, found == Leftover.HEAP) & free & (found == 0)] = Leftover.HEAP
    found[evidence.near_objects(words, found == Leftover.HEAP) & free & (found == 0)] = Leftover.ONE_SIDE
    found[_columns(words, columns, found > 0) & free & (found == 0)] = Leftover.COLUMN
    found[_repeated(words, found > 0) & free & (found == 0)] = Leftover.REPEATED
    # What is beside a leftover of the list may have another beside it.
    while (more := _beside(words, columns, found > 0) & free & (found == 0)).any():
        found[more] = Leftover.BESIDE
    found[_repeated(words, found > 0) & free & (found == 0)] = Leftover.REPEATED
    return found


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
    halves: Callable[[U64, int], U64] = lambda word, at: (word >> np.uint64(32 * at)) & LOW  # noqa: E731
    known = np.unique(
        np.concatenate([packed(halves(words.before[leftover], at), halves(words.after[leftover], at)) for at in (0, 1)])
    )
    good = np.ones(len(open_words), np.bool_)
    for at in (0, 1):
        before, after = halves(words.before[open_words], at), halves(words.after[open_words], at)
        big = (before >= np.uint64(SMALLEST_REPEATED)) & (after >= np.uint64(SMALLEST_REPEATED))
        good &= (before == after) | (big & np.isin(packed(before, after), known))
    found[open_words[good]] = True
    return found
