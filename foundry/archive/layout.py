"""The numbers of the container, as `format_spec/archive.md` and `registry.md` give them."""

from __future__ import annotations

import struct
from enum import IntEnum

MAGIC = b"\x93FDRY\r\n\x1a"
END_MAGIC = b"FDRYEND\n"
MAJOR = 1
MINOR = 0

HEADER = struct.Struct("<8sHHIQQ")
"""magic, major, minor, zero, zero, zero."""
ENTRY = struct.Struct("<IIIIQQQ32s")
"""kind, flags, process, zero, offset, stored size, raw size, SHA-256 of the raw bytes."""
FOOTER = struct.Struct("<QII32s32sHHI8s")
"""offset of the table, entries, zero, SHA-256 of header and table, capture id, major, minor, zero, end magic."""

CRITICAL = 1
WHOLE = 0xFFFFFFFF
"""Process field of a section that belongs to no process."""

BLOB_CUT = 1 << 24
"""Raw bytes of every BLOBS section but the last."""
LARGEST_SECTION = 1 << 30
LARGEST_TEXT = 1 << 26
MOST_SECTIONS = 1 << 16
LARGEST_WINDOW = 1 << 27
"""Window that a reader must be able to give a frame."""


class Kind(IntEnum):
    """Section kinds; append-only."""

    SUMMARY = 1
    CAPTURE = 2
    PROCESS = 3
    ALLOCATIONS = 4
    GROUPS = 5
    BODIES = 6
    PARAMETERS = 7
    BLOBS = 8
    TIMELINE = 9
    RELOCATIONS = 10
    PREFETCH = 11
    DEPENDENCIES = 12


TEXT_KINDS = (Kind.SUMMARY, Kind.CAPTURE, Kind.PROCESS, Kind.TIMELINE, Kind.PREFETCH)
SKIPPABLE = (Kind.SUMMARY, Kind.TIMELINE, Kind.RELOCATIONS, Kind.PREFETCH, Kind.DEPENDENCIES)
"""Kinds that are not critical."""
OF_PROCESS = (Kind.PROCESS, Kind.ALLOCATIONS, Kind.GROUPS, Kind.BODIES, Kind.PARAMETERS)
"""Kinds that each process has exactly one section of."""
OWNED = (*OF_PROCESS, Kind.RELOCATIONS, Kind.DEPENDENCIES)
"""Kinds whose sections belong to a process."""


def kind_name(kind: int) -> str:
    """Name a section kind for people."""
    return Kind(kind).name.lower() if kind in Kind._value2member_map_ else f"#{kind}"


def largest_raw(kind: int) -> int:
    """Give the limit on a section's raw size."""
    if kind in TEXT_KINDS:
        return LARGEST_TEXT
    return BLOB_CUT if kind == Kind.BLOBS else LARGEST_SECTION
