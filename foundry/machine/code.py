"""Decodes instructions just enough to tell what they may read of constant bank 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foundry.machine.architectures import Architecture
from foundry.machine.opcodes import Access, table

INSTRUCTION = 16
NO_REGISTER = 255
UNIFORM_LOADS = (0x7AC, 0xABB)
"""Instructions in which bit 91 stands for a uniform register in the address; in all others the bank is in one."""
BANK_OF_PARAMETERS = 0
LOADED = (1, 1, 2, 2, 4, 8, 16, 0)
"""Bytes by the field of a load that tells its size; 0 is not known."""

Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Accesses:
    """Bytes of bank 0 that code may read: where each access begins and ends, and whether it may read all others."""

    everything: bool
    begin: Index
    end: Index


EVERYTHING = Accesses(True, np.zeros(0, np.int64), np.zeros(0, np.int64))


def accesses(code: bytes, architecture: Architecture) -> Accesses:
    """List what code may read; everything, if an instruction is not known or an address is not in it."""
    if len(code) % INSTRUCTION:
        return EVERYTHING
    words = np.frombuffer(code, "<u8").reshape(-1, 2)
    kinds = table(architecture.blackwell)[words[:, 0] & np.uint64(0xFFF)]
    if (kinds == Access.UNKNOWN).any():
        return EVERYTHING
    at = np.flatnonzero(kinds != Access.NOTHING)
    low, high, kinds = words[at, 0], words[at, 1], kinds[at]
    opcode = _field(low, 0, 12)
    if (_field(high, 91 - 64, 1) != np.isin(opcode, UNIFORM_LOADS)).any():
        return EVERYTHING  # the bank is in a register
    bank = _field(low, 54, 5)
    mine = np.flatnonzero(bank == BANK_OF_PARAMETERS)
    low, high, kinds = low[mine], high[mine], kinds[mine]
    begin = np.where(opcode[mine] == 0x7AC, _field(low, 37, 17), _field(low, 38, 16))
    loads = kinds == Access.LOAD
    register = _field(low, 24, 8)
    uniform = _field(low, 0, 12) != 0xB82
    indexed = loads & np.where(uniform, _uniform_index(register, architecture), register != NO_REGISTER)
    open_ended = indexed | (kinds == Access.INDEXED) | (loads & (_field(high, 78 - 64, 3) != 0))
    size = np.where(loads, np.array(LOADED)[_field(high, 73 - 64, 3)], np.where(kinds == Access.WORD, 4, 8))
    open_ended |= size == 0
    odd = ~loads & (begin % 4 != 0)
    end = np.where(odd, begin // 4 * 4 + 12, begin + size)
    begin = np.where(odd, begin // 4 * 4, begin)
    return Accesses(bool(open_ended.any()), begin[~open_ended], end[~open_ended])


def _uniform_index(register: Index, architecture: Architecture) -> npt.NDArray[np.bool_]:
    """Tell which uniform loads have a register in their address; without one the field was 0 before Blackwell."""
    found: npt.NDArray[np.bool_] = register != (NO_REGISTER if architecture.blackwell else 0)
    return found


def _field(words: npt.NDArray[np.uint64], first: int, count: int) -> Index:
    found: Index = ((words >> np.uint64(first)) & np.uint64((1 << count) - 1)).astype(np.int64)
    return found
