"""Numbers shared with `native/abi/spool_format.h`; a test compares them with the header."""

from __future__ import annotations

from enum import IntEnum

NONE = 0xFFFFFFFF
"""Index that refers to nothing."""

TIME_SUFFIXES = ("_ns", "_nanoseconds")
"""Totals whose names end so are times."""


MOMENT_PREFIX = "at_"
"""Times whose names begin so are moments: nanoseconds since the process began."""


class Arena(IntEnum):
    """The parts of a device's reserved range."""

    MAIN = 0
    SCRATCH = 1
    GRAPH = 2


class Origin(IntEnum):
    """Which driver function asked for an allocation."""

    PLAIN = 0
    PITCH = 1
    ASYNC = 2


class RangeKind(IntEnum):
    """Memory that the hook did not place."""

    PINNED = 1
    REGISTERED = 2
    MANAGED = 3
    MAPPED = 4
    POOL = 5
    PEER = 6
    GLOBAL = 7
    OUTSIDE = 8


HOST_RANGES = (RangeKind.PINNED, RangeKind.REGISTERED)
"""Ranges whose address is a host pointer, which a capture never keeps."""


class Api(IntEnum):
    """How the program loaded an image."""

    MODULE = 1
    LIBRARY = 2


class Format(IntEnum):
    """What the program handed to the driver."""

    ELF = 1
    FATBIN = 2
    PTX = 3
    SIMULATED = 4
    UNKNOWN = 5


class NodeType(IntEnum):
    """`CUgraphNodeType`."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    HOST = 3
    GRAPH = 4
    EMPTY = 5
    WAIT_EVENT = 6
    EVENT_RECORD = 7
    EXT_SEMAS_SIGNAL = 8
    EXT_SEMAS_WAIT = 9
    MEM_ALLOC = 10
    MEM_FREE = 11
    BATCH_MEM_OP = 12
    CONDITIONAL = 13


class PhaseKind(IntEnum):
    """What a marked stretch of the program is."""

    SCRATCH = 1
    NAMED = 2


class DeviceFlag(IntEnum):
    """Bits of `Device.flags`."""

    VIRTUAL_MEMORY = 1
    MIG = 2
