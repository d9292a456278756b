"""Which words differ by leftovers, as told by the other launches of the kernel: `noise.py` judges words by themselves.

- LIKE: a launch that is otherwise the same holds an address of the host there. Launches are the same if grid, block,
  shared memory and all words agree, where a word that points to device memory agrees with any other that does, and
  halves of words in which such launches hold leftovers are not asked, nor those with another value in most launches of
  the kernel. What decides which slots of a struct a kernel reads is itself read, so it is never a leftover: such
  launches read the same slots.
- HEMMED: in a list, as BESIDE, at a place where some launches hold leftovers, between two places nearby where nearly
  all do: a list is filled from its front.
- FRESH: zero on one side, amid memory that is zero in nearly all launches of the kernel on both sides, and between two
  leftovers there: the stack had been used there before one launch and not before its partner.
- STRAY: on both sides another value than nearly all launches of the kernel hold on both sides, in few graphs, right
  between two leftovers of which one is rare there as well. A number of a layer would be so in all graphs.

LIKE follows from what it is made of. The others rest on many launches, so a kernel needs some.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.diff.evidence import FACTORS, HALF, LOW, U64, Index, Mask
from foundry.diff.noise import LIST_BYTES, Leftover

Numbers = npt.NDArray[np.uint8]

FEWEST_LAUNCHES = 16
FEWEST_GRAPHS = 8
RARE = 8
"""What is rare is no more than one of so many."""
FRESH_REACH = 16
STRAY_REACH = 4
HEMMED_REACH = 4
MOST_ROUNDS = 8
WITNESSES = (Leftover.ADDRESS, Leftover.HEAP, Leftover.GUARD, Leftover.ONE_SIDE)
_WHOLE = (Leftover.ADDRESS, Leftover.GUARD, Leftover.ONE_SIDE)
_POINTING = np.uint64(1 << 32)


@dataclass(frozen=True)
class Launches:
    """All launches of a kernel with as many words: a row each, and a column for each word.

    `verdict` holds what is known of words that differ, `OPEN` for those to be judged, `SAME` for those that are alike.
    `pointing` tells words that point to device memory, on each side. `shape` is a number for grid, block and shared
    memory of both sides.
    """

    before: U64
    after: U64
    pointing: tuple[Mask, Mask]
    verdict: Numbers
    parameter: Index
    parameter_bytes: Index
    graph: Index
    shape: U64


SAME, OPEN = 255, 254


def judge_alike(launches: Launches) -> Numbers:
    """Give the reason of each word that is open, for those that have one; 0 for all others."""
    found = np.zeros(launches.verdict.shape, np.uint8)
    candidates = (launches.verdict == OPEN) & ~launches.pointing[0] & ~launches.pointing[1]
    if not candidates.any():
        return found
    found[candidates & _like(_Halves(launches))] = Leftover.LIKE
    if len(found) < FEWEST_LAUNCHES:
        return found
    sure = _witnesses(launches) | (launches.verdict == Leftover.COLUMN) | (found == Leftover.LIKE)
    rules = ((Leftover.FRESH, _fresh), (Leftover.STRAY, _stray), (Leftover.HEMMED, _hemmed))
    for reason, rule in rules:
        left = candidates & (found == 0)
        rows = np.flatnonzero(left.any(axis=1))
        if len(rows):
            found[rows] |= np.where(left[rows] & rule(launches, rows, left, sure), reason, 0).astype(np.uint8)
    return found


class _Halves:
    """The halves of all words: which differ, which are leftovers, and a number for what stands in both sides."""

    def __init__(self, launches: Launches) -> None:
        self._shape = launches.shape
        self.leftover, self.differs, self._unread, self._hashes = [], [], [], []
        judged = (launches.verdict != SAME) & (launches.verdict != OPEN)
        salt = _mixed(np.arange(1, 2 * len(launches.parameter) + 1, dtype=np.uint64)).reshape(2, -1)
        for number, at in enumerate((np.uint64(0), HALF)):
            one, other = (launches.before >> at) & LOW, (launches.after >> at) & LOW
            changed = one ^ other
            self.differs.append(changed != 0)
            # A part that moved only in its high bytes may have numbers below them.
            moved = _is_any(launches.verdict, (Leftover.HEAP, Leftover.PART)) & (changed & np.uint64(0xFFFF) != 0)
            self.leftover.append(_is_any(launches.verdict, _WHOLE) | moved)
            self._unread.append(self.leftover[-1] | (judged & (changed != 0)))
            sides = [
                np.where(points, _POINTING, half) for points, half in zip(launches.pointing, (one, other), strict=True)
            ]
            hashed = _mixed(sides[0] * FACTORS[0] + sides[1] + salt[number])
            hashed[:, _own_numbers(hashed)] = 0
            self._hashes.append(hashed)

    def alike(self) -> Index:
        """Give launches the same number that agree in all halves in which such launches have no leftovers."""
        kind = self._numbered(
            [each.any(axis=0)[None, :] for each in self._unread], np.zeros(len(self._shape), np.int64)
        )
        for _ in range(MOST_ROUNDS):
            # Kinds only ever split: launches that are told apart stay so.
            finer = self._numbered([_any_of_kind(each, kind) for each in self._unread], kind)
            if finer.max() == kind.max():
                break
            kind = finer
        return kind

    def _numbered(self, unread: list[Mask], kind: Index) -> Index:
        key = _mixed(self._shape) + kind.astype(np.uint64)
        for hashed, left in zip(self._hashes, unread, strict=True):
            key += np.where(left[kind], np.uint64(0), hashed).sum(axis=1, dtype=np.uint64)
        numbers: Index = np.unique(key, return_inverse=True)[1].reshape(-1)
        return numbers


def _own_numbers(hashed: U64) -> Mask:
    """Tell which halves have another value in most launches: such a number tells a launch, not the slots it reads."""
    ordered = np.sort(hashed, axis=0)
    found: Mask = (np.diff(ordered, axis=0) != 0).sum(axis=0) * 2 > len(hashed)
    return found


def _like(halves: _Halves) -> Mask:
    """Tell which words differ only in halves that are leftovers in launches that are otherwise the same."""
    kind = halves.alike()
    good: Mask = np.ones(halves.differs[0].shape, np.bool_)
    for changed, left in zip(halves.differs, halves.leftover, strict=True):
        good &= ~changed | _any_of_kind(left, kind)[kind]
    return good


def _any_of_kind(mask: Mask, kind: Index) -> Mask:
    """Tell for each kind and column whether any launch of the kind has it."""
    found = np.zeros((int(kind.max()) + 1, mask.shape[1]), np.bool_)
    row, column = np.nonzero(mask)
    found[kind[row], column] = True
    return found


def _fresh(launches: Launches, rows: Index, candidates: Mask, sure: Mask) -> Mask:
    """Tell which words are zero on one side, between two leftovers in a stretch of columns that are mostly zero."""
    del candidates, sure
    quiet = ((launches.before | launches.after) != 0).sum(axis=0) * RARE <= len(launches.before)
    good: Mask = quiet & ((launches.before[rows] == 0) | (launches.after[rows] == 0))
    witness = _is_any(launches.verdict[rows], WITNESSES) & quiet
    good &= _between(launches, witness, ~quiet & ~witness, FRESH_REACH)
    return good


def _stray(launches: Launches, rows: Index, candidates: Mask, sure: Mask) -> Mask:
    """Tell which words are on both sides unlike most of their column, right between leftovers, one of them unusual."""
    good = np.zeros((len(rows), candidates.shape[1]), np.bool_)
    graphs = len(np.unique(launches.graph))
    if graphs < FEWEST_GRAPHS:
        return good
    for column in np.flatnonzero(candidates.any(axis=0)).tolist():
        before, after = launches.before[:, column], launches.after[:, column]
        rest = _most_frequent(before)
        off = (before != rest) | (after != rest)
        if off.sum() * RARE <= len(off) and len(np.unique(launches.graph[off])) * RARE <= graphs:
            good[:, column] = (before[rows] != rest) & (after[rows] != rest)
    good &= candidates[rows]
    near = np.zeros(good.shape[1], np.bool_)
    for column in np.flatnonzero(good.any(axis=0)).tolist():
        near[max(column - STRAY_REACH, 0) : column + STRAY_REACH + 1] = True
    unusual = np.zeros_like(good)
    for column in np.flatnonzero(near).tolist():
        pairs = _mixed(_mixed(launches.before[:, column]) + launches.after[:, column])
        other = pairs != _most_frequent(pairs)
        if other.sum() * RARE <= len(other):
            unusual[:, column] = other[rows]
    if good.any():
        unusual &= _is_any(launches.verdict[rows], WITNESSES)
        nothing = np.zeros_like(good)
        good &= _between(launches, sure[rows], (launches.verdict[rows] != SAME) & ~sure[rows], STRAY_REACH)
        good &= _near(launches, unusual, nothing, STRAY_REACH) | _near(
            launches, unusual, nothing, STRAY_REACH, back=True
        )
    return good


def _hemmed(launches: Launches, rows: Index, candidates: Mask, sure: Mask) -> Mask:
    """Tell which words of lists are in columns with leftovers, and between two in columns of hardly anything else."""
    del candidates
    columns = _witnesses(launches).any(axis=0) & (launches.parameter_bytes >= LIST_BYTES)
    full = sure[rows] & ((~sure).sum(axis=0) * RARE <= len(sure))
    found: Mask = columns & _between(launches, full, np.zeros_like(full), HEMMED_REACH)
    return found


def _witnesses(launches: Launches) -> Mask:
    return _is_any(launches.verdict, WITNESSES)


def _is_any(verdict: Numbers, reasons: tuple[Leftover, ...]) -> Mask:
    known = np.zeros(256, np.bool_)
    known[list(reasons)] = True
    found: Mask = known[verdict]
    return found


def _between(launches: Launches, wanted: Mask, stop: Mask, reach: int) -> Mask:
    return _near(launches, wanted, stop, reach) & _near(launches, wanted, stop, reach, back=True)


def _near(launches: Launches, wanted: Mask, stop: Mask, reach: int, *, back: bool = False) -> Mask:
    """Tell which words have a wanted one within reach in their parameter, and none that stops the search before."""
    turn = slice(None, None, -1 if back else 1)
    wanted, stop, parameter = wanted[:, turn], stop[:, turn], launches.parameter[turn]
    places = np.arange(wanted.shape[1], dtype=np.int32)
    last = [np.maximum.accumulate(np.where(mask, places, -1), axis=1)[:, :-1] for mask in (wanted, stop)]
    found = np.zeros(wanted.shape, np.bool_)
    same = parameter[np.maximum(last[0], 0)] == parameter[1:]
    found[:, 1:] = (last[0] >= 0) & (last[0] > last[1]) & (places[1:] - last[0] <= reach) & same
    return found[:, turn]


def _most_frequent(values: U64) -> np.uint64:
    found, counts = np.unique(values, return_counts=True)
    most: np.uint64 = found[counts.argmax()]
    return most


def _mixed(values: U64) -> U64:
    """Spread values over all 64 bits, so that their sums tell them apart."""
    mixed: U64 = values + FACTORS[0]
    for shift, factor in zip((30, 27), FACTORS[1:], strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    mixed ^= mixed >> np.uint64(31)
    return mixed
