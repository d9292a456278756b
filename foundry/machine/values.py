"""What registers hold while code is followed, and what instructions make of it, from Turing to Hopper.

A value is a range of 32-bit numbers without a sign, with the words of the launch that it was made of. What is not
known is not kept. An instruction is understood only if all bits that could change its meaning are as they were seen.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

from foundry.machine.writes import table, uniform_guard

NO_REGISTER, NO_UNIFORM, ALWAYS = 255, 63, 7
TOP = 1 << 32
UNIFORM, PREDICATE, UNIFORM_PREDICATE = 256, 512, 520
"""Where the numbers of other kinds of registers begin in a state."""
_MODIFIERS = (1 << 41) - 1
"""The second half of an instruction without what is for scheduling."""

LOADS, ONE_REGISTER = (0xB82, 0xAB9, 0xABB), 4
"""Loads of constants, and the highest size of which one register holds all."""

Sources = frozenset[object]
Value = tuple[int, int, Sources]
"""Lowest and highest number, and what it was made of."""
ZERO: Value = (0, 0, frozenset())
State = dict[int, Value]
"""By number of the register. A predicate is 0 or 1."""
Word = Callable[[int], "Value | None"]
"""Gives a word of bank 0 by its offset."""


@dataclass(frozen=True)
class Launch:
    """What is known of a launch: its words of bank 0, and the numbers that special registers stay below."""

    word: Word
    special: dict[int, Value] = field(default_factory=dict)


def written(opcode: int, low: int, high: int) -> tuple[int, ...] | None:
    """Give the registers and predicates that an instruction may write; None if that may be any."""
    kind = table().get(opcode)
    if kind is None:
        return None
    predicate = UNIFORM_PREDICATE if kind.uniform else PREDICATE
    first = (low >> 16 & 0xFF) + (UNIFORM if kind.uniform else 0)
    count = 1 if opcode in LOADS and high >> 9 & 7 <= ONE_REGISTER else kind.registers
    predicates = (predicate + (high >> shift & 7) for shift in (17, 20)[: kind.predicates])
    return (*range(first, first + count), *predicates)


def made(state: State, opcode: int, low: int, high: int, launch: Launch) -> list[tuple[int, Value]]:
    """Give what an instruction leaves in registers, as far as that is known. The state is that before it."""
    modifiers, target = high & _MODIFIERS, low >> 16 & 0xFF
    rule = _RULES.get(opcode)
    if rule is None:
        return []
    found = rule(state, low, modifiers, launch)
    if found is None:
        return []
    if opcode & 0x1FF in _UNIFORM_BASES:
        target += UNIFORM
    return [(target + step, value) for step, value in enumerate(found) if value is not None]


def register(state: State, number: int) -> Value | None:
    """Read a register."""
    return ZERO if number == NO_REGISTER else state.get(number)


def uniform_register(state: State, number: int) -> Value | None:
    """Read a uniform register."""
    return ZERO if number == NO_UNIFORM else state.get(UNIFORM + number)


def predicate(state: State, number: int, negated: int, *, uniform: bool = False) -> Value | None:
    """Read a predicate, as it is asked for."""
    held = (
        (1, 1, frozenset[object]())
        if number == ALWAYS
        else state.get((UNIFORM_PREDICATE if uniform else PREDICATE) + number)
    )
    return (1 - held[0], 1 - held[1], held[2]) if held and negated else held


def guard(state: State, opcode: int, low: int) -> Value | None:
    """Read the predicate that an instruction depends on. Its opcode tells whether that is a uniform one."""
    number, uniform = low >> 12 & 7, uniform_guard().get(opcode)
    if uniform is None and number != ALWAYS:
        return None
    return predicate(state, number, low >> 15 & 1, uniform=bool(uniform))


def _a(state: State, low: int, uniform: bool) -> Value | None:
    return (uniform_register if uniform else register)(state, low >> 24 & 0xFF)


def _b(state: State, opcode: int, low: int, launch: Launch) -> Value | None:
    """Read the second operand, by the form of the instruction."""
    form = opcode >> 9
    if form == 1:
        return (uniform_register if opcode & 0x1FF in _UNIFORM_BASES else register)(state, low >> 32 & 0xFF)
    if form == 4:
        return (low >> 32, low >> 32, frozenset())
    if form == 6:
        return uniform_register(state, low >> 32 & 0xFF)
    if form == 5 and not low >> 54 & 0x1F:
        return launch.word(low >> 38 & 0xFFFF)
    return None


Rule = Callable[[State, int, int, Launch], "list[Value | None] | None"]


def _move(opcode: int, wanted: int) -> Rule:
    def rule(state: State, low: int, modifiers: int, launch: Launch) -> list[Value | None] | None:
        return [_b(state, opcode, low, launch)] if modifiers == wanted else None

    return rule


def _shifted_sum(opcode: int, wanted: int) -> Rule:
    def rule(state: State, low: int, modifiers: int, launch: Launch) -> list[Value | None] | None:
        if modifiers & ~(0x1F << 11) != wanted:
            return None
        a, b = _a(state, low, opcode & 0x1FF in _UNIFORM_BASES), _b(state, opcode, low, launch)
        return [_sum(a, 1 << (modifiers >> 11 & 0x1F), b)]

    return rule


def _shift(opcode: int, wanted: int) -> Rule:
    def rule(state: State, low: int, modifiers: int, launch: Launch) -> list[Value | None] | None:
        if modifiers != wanted or low >> 32 > 31:
            return None
        return [_sum(_a(state, low, opcode & 0x1FF in _UNIFORM_BASES), 1 << (low >> 32), ZERO)]

    return rule


def _product(opcode: int) -> Rule:
    def rule(state: State, low: int, modifiers: int, launch: Launch) -> list[Value | None] | None:
        if modifiers >> 8 not in (0x78E00, 0x78E02):
            return None
        a, b, c = _a(state, low, False), _b(state, opcode, low, launch), register(state, modifiers & 0xFF)
        if c is not None and (low >> 24 & 0xFF == NO_REGISTER or b == ZERO):
            return [c]
        return [_sum(a, b[0], c)] if b is not None and b[0] == b[1] and not b[2] else None

    return rule


def _addend(state: State, low: int, modifiers: int, launch: Launch) -> list[Value | None] | None:
    """Give what 0 x b + a constant is."""
    zero = low >> 24 & 0xFF == NO_REGISTER
    if not zero or modifiers >> 8 not in (0x78E00, 0x78E02) or low >> 54 & 0x1F:
        return None
    return [launch.word(low >> 38 & 0xFFFF)]


def _halves(state: State, low: int, modifiers: int, launch: Launch) -> list[Value | None] | None:
    """Give what two halves of -0 x 0 + a number are: its bits, but for those that are no number."""
    halves = (low >> 32 & 0xFFFF, low >> 48)
    if modifiers != 0x1FF or low >> 24 & 0xFF != NO_REGISTER or any(half & 0x7C00 == 0x7C00 for half in halves):
        return None
    return [(low >> 32, low >> 32, frozenset())]


def _sum(a: Value | None, factor: int, b: Value | None) -> Value | None:
    """Give a x factor + b, unless that may wrap."""
    if a is None or b is None or a[1] * factor + b[1] >= TOP:
        return None
    return a[0] * factor + b[0], a[1] * factor + b[1], a[2] | b[2]


def _load(state: State, low: int, modifiers: int, launch: Launch) -> list[Value | None] | None:
    at, size = low >> 38 & 0xFFFF, modifiers >> 9 & 7
    indexed = low >> 24 & 0xFF != (NO_REGISTER if low & 0xFFF == 0xB82 else 0)
    if low >> 54 & 0x1F or size not in (4, 5) or modifiers >> 14 & 7 or modifiers >> 27 & 1 or indexed or at % 4:
        return None
    return [launch.word(at + 4 * step) for step in range(size - 3)]


def _special(state: State, low: int, modifiers: int, launch: Launch) -> list[Value | None] | None:
    return [launch.special.get(modifiers >> 8 & 0xFF)] if not modifiers & ~0xFF00 else None


_UNIFORM_BASES = frozenset((0x082, 0x091, 0x099, 0x0B9, 0x1C3))
_RULES: dict[int, Rule] = {
    0x202: _move(0x202, 0xF00),
    0x802: _move(0x802, 0xF00),
    0xA02: _move(0xA02, 0xF00),
    0xC02: _move(0xC02, 0x8000F00),
    0x882: _move(0x882, 0),
    0xC82: _move(0xC82, 0x8000000),
    0x211: _shifted_sum(0x211, 0x78E00FF),
    0x291: _shifted_sum(0x291, 0xF8E003F),
    0x819: _shift(0x819, 0x6FF),
    0x899: _shift(0x899, 0x800063F),
    0x224: _product(0x224),
    0x435: _halves,
    0x624: _addend,
    0x824: _product(0x824),
    0xB82: _load,
    0xAB9: _load,
    0x919: _special,
    0x9C3: _special,
}
UNDERSTOOD = frozenset(_RULES)
"""Opcodes of which it may be known what they leave in registers."""

_SET_PREDICATE = {0x20C: False, 0x80C: False, 0xA0C: False, 0xC0C: False, 0x28C: True, 0x88C: True}
"""Comparisons of numbers, and whether they are uniform."""
COMPARISONS = frozenset(_SET_PREDICATE)


def compared(state: State, opcode: int, low: int, high: int, launch: Launch) -> tuple[int, Value] | None:
    """Give the predicate that a comparison sets, if it must come out so, and what it was made of."""
    uniform = _SET_PREDICATE.get(opcode)
    # Another predicate may be combined with it, and the upper half of a longer number compared.
    if uniform is None or high >> 8 & 1 or high >> 10 & 3 or high >> 23 & 0xF != ALWAYS:
        return None
    number = high >> 17 & 7
    a = _a(state, low, uniform)
    if opcode == 0x28C:
        b = uniform_register(state, low >> 32 & 0xFF)
    elif opcode == 0x88C:
        b = (low >> 32, low >> 32, frozenset[object]())
    else:
        b = _b(state, opcode, low, launch)
    # Ranges decide little, and would make each size of a launch a case of its own.
    if number == ALWAYS or a is None or b is None or a[0] != a[1] or b[0] != b[1]:
        return None
    left, right = (_signed(a[0]), _signed(b[0])) if high >> 9 & 1 else (a[0], b[0])
    outcome = int(_COMPARISONS[high >> 12 & 7](left, right))
    return (UNIFORM_PREDICATE if uniform else PREDICATE) + number, (outcome, outcome, a[2] | b[2])


def _signed(number: int) -> int:
    return number - TOP if number >= TOP >> 1 else number


_COMPARISONS: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: False,
    operator.lt,
    operator.eq,
    operator.le,
    operator.gt,
    operator.ne,
    operator.ge,
    lambda a, b: True,
)
"""By the number of a comparison."""
