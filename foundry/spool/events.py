"""One class for each kind of event, with the fields of `native/abi/spool_format.h` in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from foundry.spool.bodies import Body, read_body
from foundry.spool.cursor import Cursor

ABI = 7
"""FOUNDRY_ABI: a spool of another number is of another build."""


class Begin(NamedTuple):
    """First frame of a process."""

    abi: int
    mode: int
    role: str
    executable: str
    ranks: tuple[tuple[str, str], ...]


class Driver(NamedTuple):
    """The driver library in use."""

    version: int
    simulated: int
    library: str


class Device(NamedTuple):
    """A device and the range reserved on it."""

    ordinal: int
    name: str
    uuid: bytes
    compute_major: int
    compute_minor: int
    multiprocessors: int
    total_memory: int
    flags: int
    base: int
    arena_size: int


class Context(NamedTuple):
    """A context, primary or created."""

    handle: int
    device: int
    primary: int
    ordinal: int


class Libraries(NamedTuple):
    """Library files that were mapped and not told before: path and build id."""

    files: tuple[tuple[str, str], ...]


class Allocation(NamedTuple):
    """Device memory placed by the hook."""

    address: int
    size: int
    taken: int
    device: int
    arena: int
    origin: int
    ordinal: int


class Free(NamedTuple):
    """The end of an allocation."""

    address: int
    device: int
    arena: int


class Range(NamedTuple):
    """Memory that the hook did not place."""

    kind: int
    address: int
    size: int
    owner: int
    name: str


class RangeGone(NamedTuple):
    """The end of a range."""

    kind: int
    address: int


class Contents(NamedTuple):
    """Bytes of memory that was allocated during a capture, as its graph was made; no blob: `code` says why not."""

    address: int
    size: int
    blob: int
    code: str


class Allocator(NamedTuple):
    """A thread that allocates in the main arena came, born after that many allocations at least, or ended."""

    thread: int
    ended: int
    before: int


class Image(NamedTuple):
    """A load of a kernel image."""

    handle: int
    api: int
    format: int
    blob: int
    size: int
    key: bytes
    context: int
    options: tuple[tuple[int, int], ...]
    provenance: str
    build_id: str
    offset: int


class ImageGone(NamedTuple):
    """The unload of an image."""

    handle: int


class ImageRestored(NamedTuple):
    """The next image of that handle is the restore engine's, with its instance in the archive."""

    handle: int
    instance: int


class Kernel(NamedTuple):
    """A kernel that graphs name."""

    handle: int
    image: int
    name: str
    parameters: tuple[tuple[int, int], ...]
    attributes: tuple[tuple[int, int], ...]


class Graph(NamedTuple):
    """An instantiated graph."""

    graph: int
    exec: int
    instantiate_flags: int
    device: int
    context: int
    captured: int
    set: str
    key: str
    body: Body


class GraphMetadata(NamedTuple):
    """An adapter's own text for a labelled graph."""

    set: str
    key: str
    metadata: str


class ExecGone(NamedTuple):
    """The destruction of an exec."""

    exec: int


class ExecChanged(NamedTuple):
    """An exec that no longer is what its graph said."""

    exec: int
    how: str


class EventCreated(NamedTuple):
    """A driver event."""

    handle: int
    flags: int


class EventGone(NamedTuple):
    """A driver event that the program destroyed."""

    handle: int


class CaptureFailed(NamedTuple):
    """A stream capture that ended in an error."""

    stream: int
    result: int


class ExecLaunched(NamedTuple):
    """The first launch of an exec."""

    exec: int


class Phase(NamedTuple):
    """Begin or end of a marked stretch."""

    begin: int
    kind: int
    name: str


class Counters(NamedTuple):
    """Totals so far."""

    values: tuple[tuple[str, int], ...]


class Told(NamedTuple):
    """A finding of the hook's."""

    code: str
    text: str


class Commit(NamedTuple):
    """The program is ready."""

    ordinal: int


class GraphRestored(NamedTuple):
    """What became of a graph on restore."""

    set: str
    key: str
    state: int
    reason: str
    build_nanoseconds: int


class Timings(NamedTuple):
    """How long the phases of a restore took, in nanoseconds."""

    values: tuple[tuple[str, int], ...]


class End(NamedTuple):
    """Orderly end."""


def _two_u32(cursor: Cursor) -> tuple[int, int]:
    return cursor.u32(), cursor.u32()


def _u32_i32(cursor: Cursor) -> tuple[int, int]:
    return cursor.u32(), cursor.i32()


def _u32_u64(cursor: Cursor) -> tuple[int, int]:
    return cursor.u32(), cursor.u64()


def _text_u64(cursor: Cursor) -> tuple[str, int]:
    return cursor.text(), cursor.u64()


def _two_texts(cursor: Cursor) -> tuple[str, str]:
    return cursor.text(), cursor.text()


def _begin(c: Cursor) -> Begin:
    return Begin(c.u32(), c.u32(), c.text(), c.text(), c.items(8, _two_texts))


def _device(c: Cursor) -> Device:
    return Device(
        c.u32(), c.text(), c.raw(16), c.u32(), c.u32(), c.u32(), c.u64(), c.u32(), c.u64(), c.u64()
    )  # fmt: skip


def _image(c: Cursor) -> Image:
    return Image(
        c.u64(), c.u8(), c.u8(), c.u32(), c.u64(), c.raw(32), c.u64(),
        c.items(12, _u32_u64), c.text(), c.text(), c.u64(),
    )  # fmt: skip


def _graph(c: Cursor) -> Graph:
    return Graph(
        c.u64(), c.u64(), c.u64(), c.u32(), c.u64(), c.u8(), c.text(), c.text(), read_body(c)
    )  # fmt: skip


READERS: dict[int, Callable[[Cursor], tuple[object, ...]]] = {
    1: _begin,
    2: lambda c: Driver(c.u32(), c.u32(), c.text()),
    3: _device,
    4: lambda c: Context(c.u64(), c.u32(), c.u32(), c.u32()),
    5: lambda c: Libraries(c.items(8, _two_texts)),
    10: lambda c: Allocation(c.u64(), c.u64(), c.u64(), c.u32(), c.u8(), c.u8(), c.u64()),
    11: lambda c: Free(c.u64(), c.u32(), c.u8()),
    12: lambda c: Range(c.u8(), c.u64(), c.u64(), c.u64(), c.text()),
    13: lambda c: RangeGone(c.u8(), c.u64()),
    14: lambda c: Contents(c.u64(), c.u64(), c.u32(), c.text()),
    15: lambda c: Allocator(c.u16(), c.u8(), c.u64()),
    20: _image,
    22: lambda c: ImageGone(c.u64()),
    23: lambda c: ImageRestored(c.u64(), c.u32()),
    30: lambda c: Kernel(c.u64(), c.u64(), c.text(), c.items(8, _two_u32), c.items(8, _u32_i32)),
    40: _graph,
    41: lambda c: GraphMetadata(c.text(), c.text(), c.text()),
    42: lambda c: ExecGone(c.u64()),
    43: lambda c: ExecChanged(c.u64(), c.text()),
    44: lambda c: EventCreated(c.u64(), c.u32()),
    45: lambda c: CaptureFailed(c.u64(), c.u32()),
    46: lambda c: ExecLaunched(c.u64()),
    47: lambda c: EventGone(c.u64()),
    50: lambda c: Phase(c.u8(), c.u8(), c.text()),
    51: lambda c: Counters(c.items(12, _text_u64)),
    52: lambda c: Told(c.text(), c.text()),
    53: lambda c: Commit(c.u32()),
    60: lambda c: GraphRestored(c.text(), c.text(), c.u8(), c.text(), c.u64()),
    61: lambda c: Timings(c.items(12, _text_u64)),
    99: lambda c: End(),
}
"""How to read each kind's payload, by FOUNDRY_EVENT_*."""
