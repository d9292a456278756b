"""What one launch of a kernel reads, as its own parameters decide its branches and indices."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from helpers.machine_code import BASE, kernel, launched

FLOWING = (80, 90)


def sizes(count: int, *, first: int = 3, last: int = 5, output: int = BASE) -> bytes:
    """Parameters of `by_count`."""
    return struct.pack("<i25i25qQ", count, first, *[3] * 23, last, *range(25), output)[:312]


@pytest.mark.parametrize("architecture", FLOWING)
@pytest.mark.parametrize("count", [0, 1, 2, 24])
def test_what_stands_behind_the_count_is_not_read(architecture: int, count: int) -> None:
    (found,) = launched(kernel(architecture, "by_count"), sizes(count))
    read = {byte for begin, end in found for byte in range(begin, end)}  # type: ignore[attr-defined]
    assert read == {*range(4 + 4 * count), *range(104, 104 + 8 * count), *range(304, 312)}


@pytest.mark.parametrize("architecture", FLOWING)
def test_a_count_past_the_end_reads_all_that_there_is(architecture: int) -> None:
    assert launched(kernel(architecture, "by_count"), sizes(25), sizes(1000)) == [[(0, 312)], [(0, 312)]]


@pytest.mark.parametrize("architecture", FLOWING)
def test_launches_that_decide_alike_are_followed_once(architecture: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from foundry.machine.flow import Flow

    followed = []
    follow = Flow.follow
    monkeypatch.setattr(Flow, "follow", lambda flow, launch: followed.append(1) or follow(flow, launch))
    found = launched(kernel(architecture, "by_count"), *(sizes(2, last=number) for number in range(20)), sizes(3))
    assert len(followed) == 2
    assert found[0] == found[19] != found[20]


@pytest.mark.parametrize("architecture", FLOWING)
def test_a_count_that_is_part_of_an_address_decides_nothing(architecture: int) -> None:
    block = bytearray(sizes(2))
    block[:8] = (BASE + 2).to_bytes(8, "little")
    assert launched(kernel(architecture, "by_count"), bytes(block)) == [[(0, 312)]]


def test_the_grid_bounds_an_index() -> None:
    reads = kernel(90, "slot_of_group")
    assert launched(reads, bytes(136), grid=(4, 3, 1)) == [[(8, 20), (128, 136)]]
    assert launched(reads, bytes(136), grid=(4, 30, 1)) == [[(8, 136)]]


def test_an_index_that_is_not_known_may_be_any() -> None:
    """This code multiplies by a constant of another bank."""
    assert launched(kernel(80, "slot_of_group"), bytes(136)) == ["everything"]


def test_code_for_blackwell_is_not_followed() -> None:
    assert launched(kernel(100, "slot_of_group"), bytes(136)) == ["everything"]


def test_a_kernel_that_calls_by_address_reads_what_it_may_read_at_all() -> None:
    assert launched(kernel(90, "calls"), bytes(16)) == [[(0, 4), (8, 16)]]


def test_a_kernel_that_has_the_address_of_its_parameters_reads_them_all() -> None:
    assert launched(kernel(90, "address"), bytes(136)) == ["everything"]


def test_a_branch_that_something_else_decides_goes_both_ways() -> None:
    """`BRA.U.ANY` and `BRA.DIV` differ from a plain one by bits alone."""
    plain = kernel(90, "by_count")
    words = [plain.code[at : at + 16] for at in range(0, len(plain.code), 16)]
    branches = [at for at, word in enumerate(words) if int.from_bytes(word[:2], "little") & 0xFFF == 0x947]
    for at in branches:
        words[at] = (int.from_bytes(words[at], "little") | 1 << 84).to_bytes(16, "little")
    assert launched(plain, sizes(2)) != [[(0, 312)]]
    assert launched(replace(plain, code=b"".join(words)), sizes(2)) == [[(0, 312)]]
