"""CRC-32C (Castagnoli), which the spool and the restore image carry, at the speed of numpy.

A checksum without start and end masks is linear. So what is far from the end is folded onto what is nearer; the rest is
cut into short rows, all rows advance together four bytes at a time, and their checksums are then joined pairwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Buffer: TypeAlias = "bytes | bytearray | memoryview | npt.NDArray[np.uint8]"

_POLYNOMIAL = 0x82F63B78
_ROW_EXPONENT = 6
_ROW = 1 << _ROW_EXPONENT
"""Bytes of a row."""
_FOLD = (5685 - 1362, 5685 - 426, 5685)
"""The polynomial divides x^5685 + x^1362 + x^426 + 1, and that squared, and so on: a word of 2^n bits may stand that
many words further on, three times, instead of where it is."""
_FOLDED = ("<u8", "<u2")
"""Words that are folded, one kind after the other: long steps first, then what they leave."""
_SMALL = 1024
_PIECE = 1 << 22
_THREADS = 8


def _byte_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_BYTE_TABLE = _byte_table()


@lru_cache(maxsize=1)
def _pair_tables() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Make the tables that carry sixteen bits 32 bits further, and 16 bits further."""
    single = np.array(_BYTE_TABLE, np.uint32)
    near = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(2):
        near = (near >> np.uint32(8)) ^ single[near & np.uint32(0xFF)]
    return (near >> np.uint32(16)) ^ near[near & np.uint32(0xFFFF)], near


def _apply(columns: Sequence[int], vectors: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Multiply bit vectors by a 32 x 32 bit matrix given as its columns."""
    result = np.zeros_like(vectors)
    for bit, column in enumerate(columns):
        result ^= ((vectors >> np.uint32(bit)) & np.uint32(1)) * np.uint32(column)
    return result


@lru_cache(maxsize=64)
def _power(exponent: int) -> tuple[int, ...]:
    """Build the matrix that carries a checksum over 2 ** exponent zero bytes."""
    if not exponent:
        return tuple(_advance_byte(1 << bit) for bit in range(32))
    half = _power(exponent - 1)
    return tuple(_apply(half, np.array(half, np.uint32)).tolist())


@lru_cache(maxsize=64)
def _power_tables(exponent: int) -> tuple[npt.NDArray[np.uint32], ...]:
    """Make the tables, one for each byte of a checksum, that carry it over 2 ** exponent zero bytes."""
    every = np.arange(256, dtype=np.uint32)
    return tuple(_apply(_power(exponent), every << np.uint32(8 * place)) for place in range(4))


@lru_cache(maxsize=256)
def _shift(length: int) -> tuple[int, ...]:
    """Build the matrix that carries a checksum over that many zero bytes."""
    result = np.uint32(1) << np.arange(32, dtype=np.uint32)
    for exponent in range(length.bit_length()):
        if length >> exponent & 1:
            result = _apply(_power(exponent), result)
    return tuple(result.tolist())


def _advance_byte(value: int) -> int:
    return (value >> 8) ^ _BYTE_TABLE[value & 0xFF]


def crc32c(data: Buffer) -> int:
    """Compute the CRC-32C of all the bytes, on several cores where there are many."""
    array = np.frombuffer(data, np.uint8)
    if len(array) < 2 * _PIECE:
        return _crc32c(array)
    pieces = [array[at : at + _PIECE] for at in range(0, len(array), _PIECE)]
    _pair_tables()
    from concurrent.futures import ThreadPoolExecutor  # not before: short data does without

    with ThreadPoolExecutor(_THREADS) as pool:
        sums = list(pool.map(_crc32c, pieces))
    joined = np.zeros(1, np.uint32)
    for piece, checksum in zip(pieces, sums, strict=True):
        joined = _apply(_shift(len(piece)), joined) ^ np.uint32(checksum)
    return int(joined[0])


def _crc32c(array: npt.NDArray[np.uint8]) -> int:
    size = len(array)
    if size < _SMALL:
        state = 0xFFFFFFFF
        for byte in array.tobytes():
            state = (state >> 8) ^ _BYTE_TABLE[(state ^ byte) & 0xFF]
        return state ^ 0xFFFFFFFF
    # Leading zeros leave a checksum that starts at zero as it is, and the usual start mask equals flipping four bytes.
    filled = np.empty(-(-size // _ROW) * _ROW, np.uint8)
    lead = len(filled) - size
    filled[:lead] = 0
    filled[lead:] = array
    filled[lead : lead + 4] ^= 0xFF
    for kind in _FOLDED:
        filled = _folded(filled, kind)
    return _joined(_row_sums(filled)) ^ 0xFFFFFFFF


def _folded(filled: npt.NDArray[np.uint8], kind: str) -> npt.NDArray[np.uint8]:
    """Fold whole rows onto the last ones, and give these."""
    words = filled.view(kind)
    near, middle, far = _FOLD
    row = _ROW // words.itemsize
    end = len(words) - -(-far // row) * row
    for at in range(0, end, near):
        step = min(near, end - at)
        taken = words[at : at + step]
        for distance in (near, middle, far):
            place = words[at + distance : at + distance + step]
            np.bitwise_xor(place, taken, out=place)
    return words[max(end, 0) :].view(np.uint8)


def _row_sums(filled: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    far, near = _pair_tables()
    columns = np.ascontiguousarray(filled.view("<u4").reshape(-1, _ROW // 4).T)
    state = np.zeros(columns.shape[1], np.uint32)
    first, second = np.empty_like(state), np.empty_like(state)
    halves = state.view("<u2")
    for column in columns:
        np.bitwise_xor(state, column, out=state)
        np.take(far, halves[::2], out=first, mode="wrap")
        np.take(near, halves[1::2], out=second, mode="wrap")
        np.bitwise_xor(first, second, out=state)
    return state


def _joined(sums: npt.NDArray[np.uint32]) -> int:
    """Join the checksums of rows; one of nothing in front makes their number even."""
    exponent = _ROW_EXPONENT
    while len(sums) > 1:
        if len(sums) % 2:
            sums = np.concatenate([np.zeros(1, np.uint32), sums])
        tables = _power_tables(exponent)
        places = np.ascontiguousarray(sums[0::2]).view(np.uint8)
        carried = tables[0][places[0::4]]
        for place in range(1, 4):
            carried ^= tables[place][places[place::4]]
        sums = carried ^ sums[1::2]
        exponent += 1
    return int(sums[0])
