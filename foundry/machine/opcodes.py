"""Which instructions name a word of a constant bank, by the low 12 bits of their first half.

Bits 9 to 11 are the form of an instruction: in forms 3 and 5 an operand is a word of a constant bank, at bits 38 to 58.
An opcode stands here only if it was seen in code and compared with the text of NVIDIA's disassembler. All others count
as readers of everything. Opcodes changed their meaning from Hopper to Blackwell, so there are two tables.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

FORMS = (3, 5)
"""Forms with an operand in a constant bank."""


class Access(IntEnum):
    """What an instruction may read of constant banks."""

    UNKNOWN = 0
    NOTHING = 1
    WORD = 2
    """4 bytes."""
    PAIR = 3
    """8 bytes, or 4: the opcode does not say."""
    LOAD = 4
    """As many bytes as a field says, from an address that may have a register in it."""
    INDEXED = 5
    """From an address with a register in it."""


_TURING_TO_HOPPER = """
202 207 208 209 20a 20b 20c 20f 210 211 212 213 216 219 220 221 223 224 225 227 228 229 22a 22b 230 231 232 234 235 23c
23e 245 248 287 28c 290 291 292 299 2a4 2a5 2bd 2ca 300 302 304 305 306 307 308 309 310 311 312 313 31c 31d 343 344 348
34e 355 356 361 381 386 387 388 389 38b 38c 38d 3a8 3a9 3aa 3b4 3b5 3c2 3c4 3c6 411 419 421 423 424 429 42a 42b 430 435
446 499 4a4 51d 547 589 5a7 5ab 5b2 5b4 802 803 804 805 806 807 808 809 80a 80b 80c 810 811 812 816 817 819 81c 820 823
824 825 827 828 82b 82d 82e 82f 835 836 83b 844 846 848 882 886 887 88c 890 892 896 897 899 8a4 8a5 902 908 918 919 91a
91b 941 942 943 944 945 946 947 948 949 94d 94e 950 958 95c 95d 980 981 983 984 985 986 987 988 98a 98e 98f 992 99e 9a2
9a6 9a7 9a8 9ab 9af 9b7 9b9 9c3 9c5 9c7 9c8 9f0 b1d c02 c07 c08 c09 c0b c0c c10 c11 c12 c19 c20 c23 c24 c25 c27 c28 c2b
c36 c3e c45 c46 c48 c82 d00 d02 d05 d06 d08 d09 d10 d11 d12 dbd dc7 e21 e24 e25 e29 e2a e2b e30 e46 f60 f89 f9d fae
"""
_TURING_TO_HOPPER_WORDS = (
    "002 007 008 009 00a 00b 00c 010 011 012 013 016 020 021 023 024 030 031 032 034 035 045 102 106 108"
)
"""Without the form: arithmetic on 4 bytes."""
_TURING_TO_HOPPER_PAIRS = "019 025 027 028 029 02a 02b 100 105 107 109 110 111 112 113 160 19d"
"""Without the form: arithmetic on 8 bytes, or on either; handles of textures and surfaces."""
_BLACKWELL = """
202 207 20b 20c 210 212 213 219 221 223 224 227 229 22b 231 235 245 28c 290 291 297 2a4 2a5 2ca 302 305 306 308 309 312
343 344 352 353 355 356 387 402 423 424 431 4a4 547 589 5ab 5b4 802 805 807 80b 80c 810 811 812 816 819 81c 823 824 825
82f 835 836 84a 882 886 887 88c 890 892 896 897 899 908 918 919 941 944 945 946 947 948 94d 94e 950 958 95c 980 981 983
984 986 98a 98f 992 9ab 9b9 9c3 b1d c02 c0c c10 c11 c12 c24 c25 c35 c45 c82 d00 d09 d12 e24 e29 e30 f60 f9d
"""


@lru_cache(2)
def table(blackwell: bool) -> npt.NDArray[np.uint8]:
    """Give the access of each of the 4,096 opcodes."""
    found = np.zeros(4096, np.uint8)
    found[_numbers(_BLACKWELL if blackwell else _TURING_TO_HOPPER)] = Access.NOTHING
    found[0xB82] = Access.LOAD
    if blackwell:
        found[0x7AC] = Access.LOAD
        return found
    found[0xAB9] = Access.LOAD
    found[0xABB] = Access.INDEXED
    for form in FORMS:
        for access, text in ((Access.WORD, _TURING_TO_HOPPER_WORDS), (Access.PAIR, _TURING_TO_HOPPER_PAIRS)):
            found[np.array(_numbers(text)) | form << 9] = access
    return found


def _numbers(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]
