"""Leftovers that the other launches of a kernel tell: each rule, and constants that changed beside such words."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from foundry.diff.alike import OPEN, SAME, Launches, judge_alike
from foundry.diff.noise import Leftover

STACK, MOVE = 0x7FFC1A2B3C40, 0x2B3534150
GRAPHS, PLACES, WORDS = 16, 8, 24
COUNT = GRAPHS * PLACES
NONE = Leftover.NONE


@dataclass
class Kernel:
    """Launches of a kernel, as many in each graph: all words zero, but for a count in the first."""

    parameter_bytes: int = WORDS * 8
    before: Any = field(init=False)
    after: Any = field(init=False)
    verdict: Any = field(init=False)
    shape: Any = field(init=False)
    pointing: Any = field(init=False)
    parameter: Any = field(init=False)

    def __post_init__(self) -> None:
        self.before, self.after = (np.zeros((COUNT, WORDS), np.uint64) for _ in range(2))
        self.before[:, 0] = self.after[:, 0] = 2
        self.verdict = np.full((COUNT, WORDS), SAME, np.uint8)
        self.shape = np.zeros(COUNT, np.uint64)
        self.pointing = np.zeros((2, COUNT, WORDS), np.bool_)
        self.parameter = np.zeros(WORDS, np.int64)

    def put(self, row: int, column: int, before: int, after: int, verdict: int = OPEN) -> None:
        self.before[row, column], self.after[row, column] = before, after
        self.verdict[row, column] = verdict

    def stack(self, row: int, column: int) -> None:
        word = STACK + 64 * row + 8 * column
        self.put(row, column, word, word + MOVE, Leftover.ADDRESS)

    def judged(self, row: int, column: int) -> Leftover:
        launches = Launches(
            *(self.before, self.after, (self.pointing[0], self.pointing[1]), self.verdict, self.parameter),
            np.full(WORDS, self.parameter_bytes),
            *(np.repeat(np.arange(GRAPHS), PLACES), self.shape),
        )
        found = judge_alike(launches)
        assert (found[self.verdict != OPEN] == 0).all(), "only open words get a reason"
        return Leftover(int(found[row, column]))


class TestLike:
    def kernel(self) -> Kernel:
        kernel = Kernel()
        kernel.stack(40, 5)
        kernel.put(41, 5, 7, 2)
        return kernel

    def test_a_leftover_in_a_launch_that_is_otherwise_the_same(self) -> None:
        assert self.kernel().judged(41, 5) == Leftover.LIKE

    def test_without_one(self) -> None:
        kernel = Kernel()
        kernel.put(41, 5, 7, 2)
        assert kernel.judged(41, 5) == NONE

    def test_launches_with_another_shape_or_count_are_others(self) -> None:
        kernel = self.kernel()
        kernel.shape[41] = 1
        assert kernel.judged(41, 5) == NONE
        kernel = self.kernel()
        kernel.put(41, 0, 5, 5, SAME)
        assert kernel.judged(41, 5) == NONE

    def test_a_count_that_changed_makes_it_another(self) -> None:
        kernel = self.kernel()
        kernel.put(41, 0, 2, 3)
        assert kernel.judged(41, 5) == NONE
        assert kernel.judged(41, 0) == NONE

    def test_pointers_and_leftovers_do_not_make_it_another(self) -> None:
        kernel = self.kernel()
        for row in range(COUNT):
            kernel.put(row, 3, (1 << 46) + 4096 * (row % 9), (1 << 46) + 4096 * (row % 9), SAME)
            kernel.stack(row, 7)
        kernel.pointing[:, :, 3] = True
        assert kernel.judged(41, 5) == Leftover.LIKE
        kernel.put(41, 3, 0, 0, SAME)
        kernel.pointing[:, 41, 3] = False
        assert kernel.judged(41, 5) == NONE, "no pointer there"

    def test_a_slot_that_is_read_or_not_by_one_that_is_read_or_not(self) -> None:
        """The word at 6 is a leftover in some launches and decides in others, by the count."""
        kernel = self.kernel()
        for row in range(60, 64):
            kernel.put(row, 0, 5, 5, SAME)
            kernel.put(row, 6, 1 + row % 2, 1 + row % 2, SAME)
        kernel.stack(42, 6)
        kernel.stack(60, 5)
        kernel.put(62, 5, 9, 8)
        kernel.put(63, 5, 9, 8)
        assert (kernel.judged(62, 5), kernel.judged(63, 5)) == (Leftover.LIKE, NONE)

    def test_a_half_that_moved_says_nothing_of_the_other(self) -> None:
        kernel = self.kernel()
        kernel.put(40, 5, 7 | 0x7FFC << 32, 7 | 0x7FFE << 32, Leftover.PART)
        assert kernel.judged(41, 5) == NONE
        kernel.put(41, 5, 7 | 0x7FFB << 32, 7 | 0x7FFD << 32)
        assert kernel.judged(41, 5) == Leftover.LIKE

    def test_numbers_below_high_bytes_that_moved(self) -> None:
        kernel = self.kernel()
        kernel.put(40, 5, 0x1A2B0103, 0xCD7E0103, Leftover.PART)
        assert kernel.judged(41, 5) == NONE

    def test_a_word_that_points_to_device_memory_is_none(self) -> None:
        kernel = self.kernel()
        kernel.pointing[1, 41, 5] = True
        assert kernel.judged(41, 5) == NONE


class TestFresh:
    def kernel(self) -> Kernel:
        kernel = Kernel()
        for column in (6, 14):
            kernel.put(9, column, 0, STACK + column, Leftover.ONE_SIDE)
        kernel.put(9, 10, 0, 480)
        return kernel

    def test_a_stack_that_was_used_before_one_launch(self) -> None:
        assert self.kernel().judged(9, 10) == Leftover.FRESH

    def test_not_beside_a_leftover_on_one_side_only(self) -> None:
        kernel = self.kernel()
        kernel.put(9, 14, 0, 0, SAME)
        assert kernel.judged(9, 10) == NONE

    def test_not_where_both_sides_hold_something(self) -> None:
        kernel = self.kernel()
        kernel.put(9, 10, 3, 480)
        assert kernel.judged(9, 10) != Leftover.FRESH

    @pytest.mark.parametrize("column", [8, 10, 12])
    def test_not_where_other_launches_use_the_words(self, column: int) -> None:
        kernel = self.kernel()
        for row in range(0, COUNT, 4):
            kernel.put(row, column, 5, 5, SAME)
        assert kernel.judged(9, 10) == NONE

    def test_not_in_another_parameter(self) -> None:
        kernel = self.kernel()
        kernel.parameter[12:] = 1
        assert kernel.judged(9, 10) == NONE

    def test_not_with_few_launches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("foundry.diff.alike.FEWEST_LAUNCHES", COUNT + 1)
        assert self.kernel().judged(9, 10) == NONE


class TestStray:
    def kernel(self, before: int = 17, after: int = 2) -> Kernel:
        kernel = Kernel()
        for row in range(COUNT):
            kernel.put(row, 9, STACK, STACK + MOVE, Leftover.ADDRESS)
        kernel.put(9, 7, STACK, STACK + MOVE, Leftover.ADDRESS)
        kernel.put(9, 8, before, after)
        kernel.before[9, 4] = kernel.after[9, 4] = 3  # so that no launch is like it
        return kernel

    def test_unlike_all_others_on_both_sides_among_leftovers(self) -> None:
        assert self.kernel().judged(9, 8) == Leftover.STRAY

    def test_a_constant_that_changed_is_like_the_others_on_one_side(self) -> None:
        assert self.kernel(0, 2).judged(9, 8) == NONE
        assert self.kernel(2, 0).judged(9, 8) == NONE

    def test_a_layer_that_is_special_is_so_in_all_graphs(self) -> None:
        kernel = self.kernel()
        for graph in range(0, GRAPHS, 4):
            kernel.put(graph * PLACES + 1, 8, 17, 2)
        assert kernel.judged(9, 8) == NONE

    def test_not_without_a_leftover_on_both_sides(self) -> None:
        kernel = self.kernel()
        kernel.put(9, 7, 4, 5)
        assert kernel.judged(9, 8) == NONE

    def test_not_without_an_unusual_one(self) -> None:
        kernel = self.kernel()
        for row in range(COUNT):
            kernel.put(row, 7, STACK, STACK + MOVE, Leftover.ADDRESS)
        assert kernel.judged(9, 8) == NONE


class TestHemmed:
    def kernel(self, parameter_bytes: int = 4096) -> Kernel:
        kernel = Kernel(parameter_bytes)
        for row in range(COUNT):
            kernel.stack(row, 8)
            kernel.stack(row, 12)
        kernel.stack(3, 10)
        kernel.put(9, 10, 0x30, 0x130)
        kernel.before[9, 4] = kernel.after[9, 4] = 3  # so that no launch is like it
        return kernel

    def test_between_two_places_of_leftovers_in_a_list(self) -> None:
        assert self.kernel().judged(9, 10) == Leftover.HEMMED
        assert self.kernel(256).judged(9, 10) == NONE

    def test_a_launch_that_uses_more_of_the_list(self) -> None:
        kernel = self.kernel()
        kernel.put(9, 8, 6, 6, SAME)
        assert kernel.judged(9, 10) == NONE

    def test_a_place_without_leftovers(self) -> None:
        kernel = self.kernel()
        kernel.put(3, 10, 0, 0, SAME)
        assert kernel.judged(9, 10) == NONE

    def test_places_that_are_mostly_used(self) -> None:
        kernel = self.kernel()
        for row in range(10, 60):
            kernel.put(row, 12, 4, 4, SAME)
        assert kernel.judged(9, 10) == NONE


def noisy(rng: random.Random) -> Kernel:
    """Columns of constants, of leftovers, and of both random small numbers and leftovers."""
    kernel = Kernel(4096)
    for row in range(COUNT):
        for column in range(1, WORDS):
            if column % 3 == 1:
                kernel.put(row, column, 100 + column, 100 + column, SAME)
            elif column % 3 == 2 or rng.random() < 0.5:
                kernel.stack(row, column)
            else:
                kernel.put(row, column, rng.randrange(1, 8), rng.randrange(8, 16))
    return kernel


def test_columns_of_numbers_that_nobody_chose() -> None:
    kernel = noisy(random.Random(3))
    for row, column in np.argwhere(kernel.verdict == OPEN).tolist():
        assert kernel.judged(row, column) == Leftover.LIKE
        break
    kernel.put(5, 4, 104, 105)
    assert kernel.judged(5, 4) == NONE


def test_a_constant_that_changed_is_found_among_them() -> None:
    rng = random.Random(11)
    for _ in range(20):
        kernel = noisy(rng)
        row, column = rng.randrange(COUNT), rng.randrange(1, WORDS, 3)
        constant = 100 + column
        kernel.put(row, column, constant, rng.choice((0, constant + 1, constant - 1, 1 << 20, 0x3DCCCCCD)))
        assert kernel.judged(row, column) == NONE
