"""Leftovers in parameters: what is judged one, what is not, each by its reason."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.differing import PACKED, examined, sample
from helpers.synthetic import Shape, make_spool

from foundry.diff.evidence import Columns, Words
from foundry.diff.noise import Leftover, judge
from foundry.diff.report import Kind, Strength
from foundry.model import Capture
from foundry.model.tables import padded_sizes
from foundry.model.tables import starts as model_starts
from foundry.model.views import parameter_sizes
from foundry.pack import pack

STACK, LIBRARY, HEAP = 0x7FFC1A2B3C40, 0x7F12A4C00AC0, 0x5599DEADB0E0
STACK_MOVE, LIBRARY_MOVE = 0x2B3534150, 0x5DEA00000


def judged(
    pairs: list[tuple[int, int]],
    columns: list[int] | None = None,
    *,
    known: list[bool] | None = None,
    pointing: set[int] = frozenset(),  # type: ignore[assignment]
    parameter_bytes: int = 64,
    apart: int = 2,
) -> list[Leftover]:
    """Judge words, each in a column of its own unless said otherwise, all of one parameter."""
    columns = list(range(len(pairs))) if columns is None else columns
    count = max(columns) + 1
    found = judge(
        Words(
            np.array([pair[0] for pair in pairs], np.uint64),
            np.array([pair[1] for pair in pairs], np.uint64),
            np.array(columns, np.int64),
            np.arange(len(pairs), dtype=np.int64) * apart,
            np.zeros(len(pairs), np.int64),
            np.array(known or [False] * len(pairs)),
        ),
        Columns(
            np.array([column in pointing for column in range(count)]),
            np.full(count, parameter_bytes, np.int64),
            np.zeros(count, np.int64),
        ),
    )
    return [Leftover(value) for value in found]


def moved(word: int, move: int = STACK_MOVE) -> tuple[int, int]:
    return word, word + move


def heap_pairs(count: int = 300, seed: int = 5) -> list[tuple[int, int]]:
    """Objects of a heap at a fixed address: they move by about the same distance."""
    rng = random.Random(seed)
    objects = (rng.randrange(0x1C000000, 0x30000000, 16) | 16 for _ in range(count))
    return [(word, word - 0x10F52000 + rng.randrange(-512, 512) * 16) for word in objects]


def test_no_words_are_no_leftovers() -> None:
    empty = np.zeros(0, np.uint64)
    nothing = np.zeros(0, np.int64)
    words = Words(empty, empty, nothing, nothing, nothing, np.zeros(0, np.bool_))
    assert len(judge(words, Columns(np.zeros(0, np.bool_), nothing, nothing))) == 0


@pytest.mark.parametrize("word", [STACK, LIBRARY, HEAP, 0x7FFFFFFF0000])
def test_addresses_of_the_host(word: int) -> None:
    assert judged([(word, word - 0x1000000)]) == [Leftover.ADDRESS]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (3, 4),
        (0, 1 << 20),
        (PACKED, PACKED + 1),
        (PACKED, 24576 << 32 | 4),
        (0x3F800000, 0x40000000),
        (0x3FF0000000000000, 0x4000000000000000),
        (0x400000001000, 0x200000001000),
        (388_956_160, 402_653_184),
        (0x1234567812345678, 0x8765432187654321),
    ],
)
def test_numbers_that_changed(before: int, after: int) -> None:
    """Counts, packed numbers, floats, device addresses, sizes: also beside words that are left over."""
    around = [moved(STACK + 64 * at) for at in range(40)] + [moved(LIBRARY + at, LIBRARY_MOVE) for at in range(40)]
    assert judged([*around, (before, after)])[-1] == Leftover.NONE


def test_a_word_in_memory_that_the_driver_knows_is_none() -> None:
    assert judged([moved(STACK)], known=[True]) == [Leftover.NONE]
    assert judged([moved(STACK), (3, 4)], columns=[0, 0], known=[False, True])[1] == Leftover.NONE


class TestParts:
    """Around them the stack moved from 0x7FFC1A2B3C40 to 0x7FFECD7E7D90."""

    @pytest.mark.parametrize(
        "pair",
        [
            pytest.param((0x7FFC00000007, 0x7FFE00000007), id="upper half"),
            pytest.param((0x1A2B3C4000000009, 0xCD7E7D9000000009), id="lower half, in an upper one"),
            pytest.param((0x1A2B0103, 0xCD7E0103), id="two high bytes, above flags"),
        ],
    )
    def test_halves_and_high_bytes_that_moved_as_addresses_did(self, pair: tuple[int, int]) -> None:
        assert judged([*(moved(STACK + 8 * at) for at in range(40)), pair])[-1] == Leftover.PART

    def test_not_without_addresses_that_moved_so(self) -> None:
        assert judged([(0x7FFC00000007, 0x7FFE00000007)]) == [Leftover.NONE]

    def test_not_if_the_number_beside_it_changed(self) -> None:
        around = [moved(STACK + 8 * at) for at in range(40)]
        assert judged([*around, (0x7FFC00000007, 0x7FFE00000008)])[-1] == Leftover.NONE


class TestHeap:
    def test_a_heap_at_a_fixed_address(self) -> None:
        assert set(judged(heap_pairs())) == {Leftover.HEAP}

    def test_too_few_words_are_no_evidence(self) -> None:
        assert set(judged(heap_pairs(50))) == {Leftover.NONE}

    def test_sizes_that_grew_are_no_heap(self) -> None:
        """Many large numbers, each another multiple of what it was."""
        pairs = [((1 << 24) + 4096 * at, 2 * ((1 << 24) + 4096 * at)) for at in range(3000, 60000, 100)]
        assert set(judged(pairs)) == {Leftover.NONE}

    def test_round_numbers_within_the_heap_are_none(self) -> None:
        assert judged([*heap_pairs(), (0x20000000, 0x18000000)])[-1] == Leftover.NONE

    def test_round_addresses_that_moved_as_far_as_an_object_beside_them(self) -> None:
        aligned = [*heap_pairs(), moved(0x20000010, -0x10F52000), moved(0x20000200, -0x10F52000)]
        assert judged(aligned)[-1] == Leftover.HEAP

    @pytest.mark.parametrize(
        ("before", "after"),
        [(1e-6, 1e-5), (1e-5, 1e-6), (0.1, 0.05), (0.0883883461, 0.125), (0.0441941731, 0.0883883461)],
    )
    def test_floats_within_the_heap_are_none(self, before: float, after: float) -> None:
        """Floats from 10^-21 to 0.1 have the bits of addresses of such a heap."""
        wide = [(word, word - 0x8001230) for word in range(0x20000010, 0x48000010, 0x220010)]
        one, other = (struct.unpack("<I", struct.pack("<f", value))[0] for value in (before, after))
        found = judged([*wide, (one, other), (one, 0), (0, other)])
        assert found[-3:] == [Leftover.NONE] * 3
        assert set(found[:-3]) == {Leftover.HEAP}

    def test_an_end_of_an_object_on_one_side(self) -> None:
        pairs = heap_pairs()
        assert judged([*pairs, (pairs[0][0] + 0x48, 7)])[-1] == Leftover.ONE_SIDE
        assert judged([*pairs, (7, pairs[3][1] + 0x48)])[-1] == Leftover.ONE_SIDE
        far = 0x7FFFFFF8
        assert judged([*pairs, (far, 7)])[-1] == Leftover.NONE


def test_an_address_on_one_side() -> None:
    around = [moved(STACK + 8 * at) for at in range(4)]
    assert judged([*around, (STACK + 0x100, 0)])[-1] == Leftover.ONE_SIDE
    assert judged([*around, (7, STACK + STACK_MOVE)])[-1] == Leftover.ONE_SIDE
    assert judged([(STACK, 0)]) == [Leftover.NONE], "without evidence of such addresses"


def test_the_stack_guard() -> None:
    guard = 0x79E8403033A4E300, 0x54953EECB1D87300
    assert judged([guard, guard]) == [Leftover.GUARD] * 2
    assert judged([guard, (guard[0], 0x1122334455667700)]) == [Leftover.NONE] * 2
    assert judged([guard, guard, (0, guard[1]), (guard[0], 3)])[2:] == [Leftover.ONE_SIDE] * 2
    assert judged([guard, guard, (0, guard[0])])[2] == Leftover.NONE, "the other side's"


class TestColumns:
    def test_most_words_of_a_column_decide(self) -> None:
        assert judged([moved(STACK), moved(STACK + 8), (1, 2)], columns=[0, 0, 0])[-1] == Leftover.COLUMN
        assert judged([moved(STACK), (3, 4), (1, 2)], columns=[0, 0, 0])[-1] == Leftover.NONE

    def test_not_where_words_point_to_device_memory(self) -> None:
        assert judged([moved(STACK), (1, 2)], columns=[0, 0], pointing={0})[-1] == Leftover.NONE


AROUND = (moved(STACK), moved(STACK + 8), moved(STACK + 16))


class TestLists:
    def test_beside_a_leftover_in_a_long_list(self) -> None:
        pairs = [*AROUND, (0xB6F0, 0xCD90)]
        assert judged(pairs, parameter_bytes=4096, apart=1)[-1] == Leftover.BESIDE
        assert judged(pairs, parameter_bytes=256, apart=1)[-1] == Leftover.NONE
        assert judged(pairs, parameter_bytes=4096, apart=2)[-1] == Leftover.NONE

    def test_small_numbers_only_between_two(self) -> None:
        assert judged([*AROUND, (1, 2)], parameter_bytes=4096, apart=1)[-1] == Leftover.NONE
        between = [*AROUND, (1, 2), moved(STACK + 24)]
        assert judged(between, parameter_bytes=4096, apart=1)[3] == Leftover.BESIDE

    def test_the_same_two_values_elsewhere(self) -> None:
        random_pair = 0x8A72B525611CF051, 0x02707F6C0198AEBA
        pairs = [*AROUND, random_pair, (3, 4), (5, 6), random_pair]
        found = judge_apart(pairs)
        assert found[3] == Leftover.BESIDE
        assert found[6] == Leftover.REPEATED


def judge_apart(pairs: list[tuple[int, int]]) -> list[Leftover]:
    """The last word lies in another parameter, a short one."""
    count = len(pairs)
    found = judge(
        Words(
            np.array([pair[0] for pair in pairs], np.uint64),
            np.array([pair[1] for pair in pairs], np.uint64),
            np.arange(count),
            np.array([0, 1, 2, 3, 10, 20, 30]),
            np.zeros(count, np.int64),
            np.zeros(count, np.bool_),
        ),
        Columns(np.zeros(count, np.bool_), np.array([4096] * 4 + [64] * 3), np.array([0] * 4 + [1] * 3)),
    )
    return [Leftover(value) for value in found]


def test_structs_without_members() -> None:
    assert judged([(0x4000001800, 0xA000001800)], parameter_bytes=1) == [Leftover.EMPTY]
    assert judged([(0x100001800, 0x000001800)], parameter_bytes=1) == [Leftover.NONE], "true and false"
    assert judged([(0x4000001800, 0xA000001800)], parameter_bytes=4) == [Leftover.NONE]


class TestCaptures:
    def test_leftovers_are_noise(self) -> None:
        report = examined(sample(words=(STACK, 5)), sample(words=(STACK + STACK_MOVE, 5)))
        assert (report.verdict, report.words) == (Strength.NOISE, {"address": 6})
        (change,) = report.strongest_first(Kind.NODES)
        assert change.where == "python-0: graph decode/8: node 4 and 5 more"
        assert change.what == "`mix_array<float>`: parameter 2, byte 16: address"

    def test_a_constant_that_changed_beside_leftovers_is_different(self) -> None:
        report = examined(sample(words=(STACK, 5)), sample(words=(STACK + STACK_MOVE, 5), constant=4))
        assert (report.verdict, report.words) == (Strength.DIFFERENT, {"different": 6, "address": 6})
        change = next(report.strongest_first(Kind.NODES))
        assert change.what == "`mix_array<float>`: parameter 1, byte 8"
        assert (change.before, change.after, change.count) == ("3", "4", 3)

    def test_leftovers_and_relocation_together_are_noise(self) -> None:
        report = examined(sample(words=(STACK, 5)), sample(0x200000000000, words=(STACK + STACK_MOVE, 5)))
        assert (report.verdict, report.words) == (Strength.NOISE, {"relocated": 9, "address": 6})

    def test_a_number_where_like_launches_hold_leftovers(self) -> None:
        """A launch in the column points to device memory, so the column alone says nothing."""
        before, after = (with_words(sample(words=(word, 5)), {3: number}) for word, number in (
            (STACK, 7), (STACK + STACK_MOVE, 2)))  # fmt: skip
        sides = [with_words(side, {7: 0x400000002000}) for side in (before, after)]
        report = examined(*sides)
        assert (report.verdict, report.words) == (Strength.NOISE, {"address": 4, "like": 1})
        report = examined(*(with_launch(side, 3) for side in sides))
        assert (report.verdict, report.words) == (Strength.DIFFERENT, {"address": 4, "different": 1})

    def test_a_word_in_managed_memory_is_different(self) -> None:
        before, after = sample(words=(STACK, 5)), sample(words=(STACK + STACK_MOVE, 5))
        process = before.processes[0]
        known = replace(process.ranges[0], kind=3, address=STACK - 64, size=4096, image=0xFFFFFFFF, name="")
        sides = [replace(side, processes=(replace(side.processes[0], ranges=(known,)),)) for side in (before, after)]
        report = examined(*sides)
        assert (report.verdict, report.words) == (Strength.DIFFERENT, {"different": 6})
        assert next(report.strongest_first(Kind.NODES)).before == f"{STACK:#x}, managed memory + 0x40"


def with_words(capture: Capture, words: dict[int, int]) -> Capture:
    """The capture with other words where launches, by their number, have the first of those given to `sample`."""
    process = capture.processes[0]
    starts = model_starts(padded_sizes(parameter_sizes(process))) // 8
    parameters = process.parameters.copy().view("<u8")
    for launch, word in words.items():
        parameters[starts[launch] + 2] = word
    return replace(capture, processes=(replace(process, parameters=parameters.view(np.uint8)),))


def with_launch(capture: Capture, launch: int) -> Capture:
    """The capture with a launch that has a grid of its own."""
    process = capture.processes[0]
    launches = process.launches.copy()
    launches["grid"][launch, 1] = 2
    return replace(capture, processes=(replace(process, launches=launches),))


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    shape = Shape(graphs=4, layers=4, kernels_per_layer=12, kernels=20, images=6, image_bytes=2000)
    return pack(make_spool(tmp_path_factory.mktemp("job"), shape))[0]


def in_another_process(capture: Capture, rng: random.Random) -> Capture:
    """The capture with all that looks like host addresses moved, each mapping by a distance of its own."""
    process = capture.processes[0]
    words = process.parameters.copy().view("<u8")
    for low, high in ((0x550000000000, 0x570000000000), (0x7E0000000000, 0x7F8000000000), (0x7FF000000000, 1 << 47)):
        mask = (words >= low) & (words < high)
        words[mask] = words[mask] - np.uint64(rng.randrange(1, 1 << 20) << 12)
    return replace(capture, processes=(replace(process, parameters=words.view(np.uint8)),))


def test_a_job_in_another_process_is_equal_up_to_noise(job: Capture) -> None:
    for seed in range(5):
        report = examined(job, in_another_process(job, random.Random(seed)))
        assert report.verdict == Strength.NOISE, report.words
        assert report.words["address"] > 1000


def test_a_constant_of_a_job_that_changed_is_found_among_the_noise(job: Capture) -> None:
    rng = random.Random(9)
    process = job.processes[0]
    words = process.parameters.view("<u8")
    noisy = (words >= 0x550000000000).astype(np.bool_)
    plain = np.flatnonzero(~noisy & (words > 0) & (words < 1 << 20))
    for _ in range(20):
        after = in_another_process(job, rng)
        at = int(plain[rng.randrange(len(plain))])
        changed: Any = after.processes[0].parameters.copy().view("<u8")
        changed[at] += 1
        after = replace(after, processes=(replace(after.processes[0], parameters=changed.view(np.uint8)),))
        report = examined(job, after)
        assert report.verdict == Strength.DIFFERENT
        assert report.words["different"] == 1
        change = next(report.strongest_first(Kind.NODES))
        assert (change.before, change.after) == (f"{int(words[at]):,}", f"{int(words[at]) + 1:,}")


def test_the_layout_is_not_asked_where_it_is_not_known(tmp_path: Path) -> None:
    """Every byte may be a parameter then."""
    before = sample()
    process = before.processes[0]
    unknown = tuple(replace(kernel, parameters=()) for kernel in process.kernels)
    changed = process.parameters.copy()
    changed[12] ^= 1
    sides = [
        replace(before, processes=(replace(process, kernels=unknown, parameters=parameters),))
        for parameters in (process.parameters, changed)
    ]
    report = examined(*sides)
    assert (report.verdict, report.words) == (Strength.DIFFERENT, {"different": 1})
    assert next(report.strongest_first(Kind.NODES)).what == "`scale`: parameters, byte 8"
