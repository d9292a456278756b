"""The call frames in `.debug_frame`: which function each is of."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foundry.binary.errors import ImageError

_LONG = b"\xff\xff\xff\xff"
_WIDE, _NARROW = struct.Struct("<QQ"), struct.Struct("<II")
"""Length and what follows it: where what they have in common stands, or all ones for that itself."""


class _Record(NamedTuple):
    """A description of a function's frames, or what several such have in common (`common` is None then)."""

    begin: int
    end: int
    pointer: int
    wide: bool
    common: int | None


def without_frames(
    data: bytes, relocations: npt.NDArray[np.void], gone: npt.NDArray[np.bool_]
) -> tuple[bytes, npt.NDArray[np.void]]:
    """Leave out the frames of functions whose symbols go. `relocations` are those of this section."""
    records = _records(data)
    begins = np.array([record.begin for record in records], np.int64)
    ends = np.array([record.end for record in records], np.int64)
    offsets = relocations["offset"].astype(np.int64)
    holders = np.searchsorted(begins, offsets, "right") - 1
    if (holders < 0).any() or (offsets + 8 > ends[holders]).any():
        raise ImageError("a call frame's relocation is in none")
    told, leaves = np.zeros(len(records), bool), np.zeros(len(records), bool)
    told[holders] = True
    leaves[holders[gone[relocations["symbol"]]]] = True
    stays = np.zeros(len(records), bool)
    where = {record.begin: number for number, record in enumerate(records) if record.common is None}
    for number, record in enumerate(records):
        if record.common is None:
            continue
        if record.common not in where or not told[number]:
            raise ImageError("a call frame is of no function")
        if not leaves[number]:
            stays[number] = stays[where[record.common]] = True
    if (stays & leaves).any():
        raise ImageError("call frames of functions that stay and that go are one")
    out, moved = bytearray(), np.zeros(len(records), np.int64)
    for number in np.flatnonzero(stays).tolist():
        moved[number] = len(out) - records[number].begin
        out += data[records[number].begin : records[number].end]
    for number in np.flatnonzero(stays).tolist():
        record = records[number]
        if record.common is not None:
            common = record.common + int(moved[where[record.common]])
            struct.pack_into("<Q" if record.wide else "<I", out, record.pointer + int(moved[number]), common)
    kept = relocations[stays[holders]].copy()
    kept["offset"] = kept["offset"].astype(np.int64) + moved[holders[stays[holders]]]
    return bytes(out), kept


def _records(data: bytes) -> list[_Record]:
    found, at = [], 0
    while at < len(data):
        wide = data.startswith(_LONG, at)
        pair, pointer = (_WIDE, at + 12) if wide else (_NARROW, at + 4)
        size = pair.size // 2
        if pointer + size > len(data):
            raise ImageError("a call frame is cut")
        length, common = pair.unpack_from(data, pointer - size)
        end = pointer + length
        if length < size or end > len(data):
            raise ImageError("a call frame is cut")
        found.append(_Record(at, end, pointer, wide, None if common == (1 << 8 * size) - 1 else common))
        at = end
    return found
