"""Segments: what of a cubin is put into memory as one."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from foundry.binary.parts import Mask, Parts, UnsureError
from foundry.binary.sections import ALLOCATED, EMPTY

_SEGMENT = struct.Struct("<IIQQQQQQ")
_LOAD, _SEGMENTS = 1, 6
_WRITABLE, _CODE = 1, 4
_EXECUTED, _WRITTEN = 1, 2
"""Bits of a section and of a segment."""
_LARGEST_ALIGNMENT = 1 << 12


def segments(parts: Parts, dropped: Mask, headers: npt.NDArray[np.void], at: int) -> list[bytes]:
    """Put each segment around the sections that it was around; one without any is left out."""
    listed: list[tuple[int, Mask | None, tuple[int, ...]]] = []
    placed = np.zeros(len(parts.sections), np.int64)
    for number in range(parts.segment_count):
        begin = parts.segments_at + number * _SEGMENT.size
        if begin + _SEGMENT.size > len(parts.data):
            raise UnsureError("its segments pass its end")
        segment = _SEGMENT.unpack_from(parts.data, begin)
        kind, flags, offset, virtual, physical, in_file, in_memory, _ = segment
        if kind not in (_LOAD, _SEGMENTS) or virtual or physical:
            raise UnsureError("it has segments of another kind")
        if offset == parts.segments_at:
            listed.append((kind, None, segment))
            continue
        inside = _inside(parts, flags, offset, in_file)
        if kind != _LOAD or _extent(parts.sections[inside]) != (offset, in_file, in_memory):
            raise UnsureError("a segment is not around its sections")
        placed += inside
        if inside[~dropped].any():
            listed.append((kind, inside[~dropped], segment))
    allocated = (parts.sections["flags"] & np.uint64(ALLOCATED)) != 0
    if parts.segment_count and (placed != allocated).any():
        raise UnsureError("a section is in no segment or in two")
    size = len(listed) * _SEGMENT.size
    found = []
    for kind, inside_kept, segment in listed:
        begin, in_file, in_memory = (at, size, size) if inside_kept is None else _extent(headers[inside_kept])
        found.append(_SEGMENT.pack(kind, segment[1], begin, 0, 0, in_file, in_memory, segment[7]))
    return found


def _inside(parts: Parts, flags: int, offset: int, size: int) -> Mask:
    """Tell which sections lie in a segment, by place and by what may be done with them."""
    bits, begin, length = (parts.sections[field].astype(np.int64) for field in ("flags", "offset", "size"))
    allowed = (bits & _CODE == 0) | bool(flags & _EXECUTED)
    allowed &= (bits & _WRITABLE != 0) == bool(flags & _WRITTEN)
    length[parts.sections["type"] == EMPTY] = 0
    inside: Mask = (bits & ALLOCATED != 0) & allowed & (begin >= offset) & (begin + length <= offset + size)
    return inside


def _extent(sections: npt.NDArray[np.void]) -> tuple[int, int, int]:
    """Give offset, bytes in the file and bytes in memory of sections that follow one another."""
    if not len(sections):
        return 0, 0, 0
    empty = sections["type"] == EMPTY
    begin = int(sections["offset"].min())
    end = int((sections["offset"] + np.where(empty, 0, sections["size"]).astype(np.uint64)).max())
    memory = end - begin
    for row in sections[empty]:
        memory += -memory % alignment_of(row) + int(row["size"])
    return begin, end - begin, memory


def alignment_of(header: np.void) -> int:
    """Give the alignment of a section."""
    alignment = max(1, int(header["alignment"]))
    if alignment > _LARGEST_ALIGNMENT:
        raise UnsureError("a section is aligned too widely")
    return alignment
