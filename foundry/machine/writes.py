"""Which registers an instruction may write and which predicate guards it, by its opcode, from Turing to Hopper.

An opcode is the low 12 bits of an instruction's first half. Whoever follows values through code must forget what an
instruction may write. What stands in no list here may write anything, and may be guarded by anything.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

FORMS = range(1, 8)


class Writes(NamedTuple):
    """How many registers an instruction writes, from that of its field on, and how many predicates."""

    registers: int
    predicates: int
    uniform: bool = False


NOTHING = Writes(0, 0)
_OF_ANY_FORM = {
    Writes(0, 2): "00b 00c 01c 02a 034",
    Writes(
        1, 0
    ): """003 007 008 009 00a 013 016 017 019 020 021 023 030 031 032 035 036 03e 045 104 105 106 107 108 109""",
    Writes(1, 1): "011 012 024 027 100 102",
    Writes(1, 2): "010",
    Writes(2, 0): "005 028 029 02b 110 111 112 113",
    Writes(2, 1): "025",
    Writes(0, 2, True): "08c",
    Writes(1, 0, True): "082 087 096 099",
    Writes(1, 2, True): "086 090 091 092 0a4 0bd 0ca",
    Writes(2, 2, True): "097 0a5",
}
"""Arithmetic, without the form."""
_OPCODES = {
    NOTHING: """348 386 387 388 3c6 547 5ab 82d 82e 918 91a 91b 941 942 945 946 947 948 94d 95d 985 986 987 988 98e 98f
        992 9a6 9ab 9af 9b7 b1d""",
    Writes(1, 0): "202 802 919 a02 c02",
    Writes(1, 1): "389 589 989 f89",
    Writes(2, 0): "b82",
    Writes(4, 1): "381 980 981 983 984",
    Writes(1, 0, True): "9c3",
    Writes(2, 0, True): "ab9 abb",
}


_TO_UNIFORM = 0x0CA
"""Moves a register to a uniform one; all others that write uniform registers work on these alone."""
_OF_A_THREAD = frozenset((0x388, 0x942, 0x947, 0x94D))
"""Instructions that write nothing and were seen with the guard of a thread. Of the others it is not known."""


@lru_cache(1)
def uniform_guard() -> dict[int, bool]:
    """Tell for opcodes whether a uniform predicate guards them; it is not known of those that are missing."""
    found = dict.fromkeys(_OF_A_THREAD, False)
    for opcode, kind in table().items():
        if kind.registers or kind.predicates:
            found[opcode] = kind.uniform and opcode & 0x1FF != _TO_UNIFORM
    del found[0x9C3]  # reads a special register into a uniform one; never seen with a guard
    return found


@lru_cache(1)
def table() -> dict[int, Writes]:
    """Give what opcodes write; those that are missing may write anything."""
    found = {}
    for kind, text in _OF_ANY_FORM.items():
        for base in text.split():
            found.update({int(base, 16) | form << 9: kind for form in FORMS})
    for kind, text in _OPCODES.items():
        found.update({int(opcode, 16): kind for opcode in text.split()})
    return found
