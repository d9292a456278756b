"""An instruction that depends on a predicate counts as run unless that very predicate is known to stand against it."""

from __future__ import annotations

import struct

import pytest

from foundry.machine.architectures import ARCHITECTURES
from foundry.machine.flow import Flow
from foundry.machine.values import Launch

ALWAYS, NOT_0, IF_0 = 7, 8, 0
EQUAL = 2
OFFSET = 0x250
LOAD, UNIFORM_LOAD = 0xB82, 0xAB9


def instruction(opcode: int, *, guard: int = ALWAYS, low: int = 0, high: int = 0) -> bytes:
    return struct.pack("<QQ", opcode | guard << 12 | low, high)


def move(number: int) -> bytes:
    """R0 = number."""
    return instruction(0x802, low=number << 32, high=0xF00)


def uniform_move(number: int) -> bytes:
    """UR0 = number."""
    return instruction(0x882, low=number << 32)


def equals(opcode: int, number: int) -> bytes:
    """P0 = R0 == number, or UP0 = UR0 == number."""
    return instruction(opcode, low=number << 32, high=EQUAL << 12 | 7 << 20 | ALWAYS << 23)


def load(opcode: int, guard: int) -> bytes:
    index = 0xFF if opcode == LOAD else 0
    return instruction(opcode, guard=guard, low=4 << 16 | index << 24 | OFFSET << 38, high=4 << 9)


EXIT = instruction(0x94D, high=ALWAYS << 23)
THREAD = move(5) + equals(0x80C, 5)
UNIFORM = uniform_move(5) + equals(0x88C, 5)


@pytest.mark.parametrize(
    ("before", "opcode", "guard", "read"),
    [
        (THREAD, LOAD, IF_0, True),
        (THREAD, LOAD, NOT_0, False),
        (THREAD, UNIFORM_LOAD, NOT_0, True),
        (UNIFORM, UNIFORM_LOAD, IF_0, True),
        (UNIFORM, UNIFORM_LOAD, NOT_0, False),
        (UNIFORM, LOAD, NOT_0, True),
    ],
)
def test_a_guard_is_a_predicate_of_the_instructions_own_kind(
    before: bytes, opcode: int, guard: int, read: bool
) -> None:
    flow = Flow(before + load(opcode, guard) + EXIT, ARCHITECTURES[90], calls_away=False)
    reached = flow.follow(Launch(lambda _: None))
    assert reached is not None
    assert ((OFFSET, OFFSET + 4) in reached.spans) == read


def test_what_an_unknown_guard_stands_before_may_run() -> None:
    moves = instruction(0x9C3, guard=NOT_0, low=0, high=0x25 << 8)
    code = UNIFORM + moves + equals(0x88C, 5) + load(UNIFORM_LOAD, NOT_0) + EXIT
    reached = Flow(code, ARCHITECTURES[90], calls_away=False).follow(Launch(lambda _: None))
    assert reached is not None
    assert (OFFSET, OFFSET + 4) in reached.spans
