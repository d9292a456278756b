"""From a capture to an archive file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import zstandard

from foundry.archive import layout
from foundry.archive.brief import encode_summary
from foundry.archive.columns import encode_allocations, encode_bodies, encode_groups
from foundry.archive.container import Section, capture_id
from foundry.archive.dependencies import encode_dependencies
from foundry.archive.heads import encode_head, head_of
from foundry.archive.layout import FOOTER, HEADER, Kind
from foundry.archive.parallel import in_order
from foundry.archive.parameters import encode_parameters
from foundry.archive.prefetch import encode_prefetch
from foundry.archive.process_text import encode_process
from foundry.archive.relocations import encode_relocations
from foundry.archive.target import put
from foundry.archive.text import encode
from foundry.archive.timeline import encode_timeline
from foundry.model import Capture, Process
from foundry.model.checks import check_capture
from foundry.model.views import kernel_ids, parameter_sizes

if TYPE_CHECKING:
    from foundry.archive.advance import Ahead

_TEXT_LEVEL = 12
_TABLE_LEVELS = (3, 9)
_BLOB_LEVEL = 11
_BLOB_WINDOW = 24


def write_archive(capture: Capture, path: Path, *, force: bool, ahead: Ahead | None = None) -> str:
    """Write the archive and return its capture id in hexadecimal. Raises ValueError for a capture that is not sound."""
    check_capture(capture)
    stream = ArchiveStream(capture, ahead)
    put(path, stream, force=force)
    return stream.identity.hex()


class _Work(NamedTuple):
    """A section to be packed at one of the levels of its kind. Blobs sections are numbered."""

    kind: Kind
    process: int
    raw: bytes | memoryview
    level: int
    number: int = 0


class ArchiveStream:
    """The bytes of an archive, part by part; `identity` and `sections` are known once all parts were taken."""

    def __init__(self, capture: Capture, ahead: Ahead | None = None) -> None:
        self._capture = capture
        self._ahead = ahead
        self.sections: list[Section] = []
        self.identity = b""

    def __iter__(self) -> Iterator[bytes]:
        header = HEADER.pack(layout.MAGIC, layout.MAJOR, layout.MINOR, 0, 0, 0)
        yield header
        at = len(header)
        for kind, process, size, digest, stored in self._packed():
            flags = 0 if kind in layout.SKIPPABLE else layout.CRITICAL
            self.sections.append(Section(kind, flags, process, at, len(stored), size, digest))
            yield stored
            at += len(stored)
        table = b"".join(section.packed() for section in self.sections)
        yield table
        self.identity = capture_id(self.sections)
        checked = hashlib.sha256(header + table).digest()
        yield FOOTER.pack(
            at, len(self.sections), 0, checked, self.identity, layout.MAJOR, layout.MINOR, 0, layout.END_MAGIC
        )

    def _packed(self) -> Iterator[tuple[Kind, int, int, bytes, bytes]]:
        """Give what the table says of each section, its digest, and the smallest of its frames."""
        digest, frames = b"", []
        for work, found, frame in in_order(self._pack, self._work()):
            digest = found or digest
            frames.append(frame)
            if work.level == _levels(work.kind)[-1]:
                yield work.kind, work.process, len(work.raw), digest, min(frames, key=len)
                frames = []

    def _work(self) -> Iterator[_Work]:
        for kind, process, raw in _small_sections(self._capture):
            for level in _levels(kind):
                yield _Work(kind, process, raw, level)
        outside = self._capture.outside
        stored_blobs = (blob for index, blob in enumerate(self._capture.blobs) if index not in outside)
        for number, raw in enumerate(blob_cuts(stored_blobs)):
            yield _Work(Kind.BLOBS, layout.WHOLE, raw, _BLOB_LEVEL, number)

    def _pack(self, work: _Work) -> tuple[_Work, bytes, bytes]:
        """Make a frame; the digest with the first one of a section."""
        first = work.level == _levels(work.kind)[0]
        digest = hashlib.sha256(work.raw).digest() if first else b""
        if work.kind != Kind.BLOBS:
            return work, digest, zstandard.ZstdCompressor(level=work.level).compress(work.raw)
        known = self._ahead.frame(work.number, digest) if self._ahead else None
        return work, digest, known or compress_blobs(work.raw)


def _levels(kind: Kind) -> tuple[int, ...]:
    if kind == Kind.BLOBS:
        return (_BLOB_LEVEL,)
    return (_TEXT_LEVEL,) if kind in layout.TEXT_KINDS else _TABLE_LEVELS


def _small_sections(capture: Capture) -> Iterator[tuple[Kind, int, bytes | memoryview]]:
    head = head_of(capture)
    yield Kind.SUMMARY, layout.WHOLE, encode(encode_summary(head, capture.processes))
    yield Kind.CAPTURE, layout.WHOLE, encode(encode_head(head))
    for index, process in enumerate(capture.processes):
        for kind, raw in _process_sections(process):
            yield kind, index, raw
    if any(process.spent for process in capture.processes):
        yield Kind.TIMELINE, layout.WHOLE, encode(encode_timeline(capture))
    if capture.start_files:
        yield Kind.PREFETCH, layout.WHOLE, encode(encode_prefetch(capture.start_files))


def _process_sections(process: Process) -> Iterator[tuple[Kind, bytes | memoryview]]:
    yield Kind.PROCESS, encode(encode_process(process))
    yield Kind.ALLOCATIONS, encode_allocations(process.allocations)
    yield Kind.GROUPS, encode_groups(process.groups)
    yield (
        Kind.BODIES,
        encode_bodies(
            process.bodies,
            process.children,
            process.event_nodes,
            process.launches,
            process.memsets,
            process.copies,
        ),
    )
    yield Kind.PARAMETERS, encode_parameters(process.parameters, kernel_ids(process), parameter_sizes(process))
    if process.proof is not None:
        yield Kind.RELOCATIONS, encode_relocations(process.proof)
    if any(len(group.order) for group in process.groups):
        yield Kind.DEPENDENCIES, encode_dependencies(process.groups)


def blob_cuts(blobs: Iterable[bytes]) -> Iterator[bytes]:
    """Cut all blobs, one after the other, into the raw bytes of BLOBS sections."""
    return map(b"".join, blob_pieces(blobs))


def blob_pieces(blobs: Iterable[bytes]) -> Iterator[list[memoryview]]:
    """Give the pieces that each BLOBS section is joined of."""
    gathered: list[memoryview] = []
    room = layout.BLOB_CUT
    for blob in blobs:
        view = memoryview(blob)
        while len(view) >= room:
            yield [*gathered, view[:room]]
            view, gathered, room = view[room:], [], layout.BLOB_CUT
        if view:
            gathered.append(view)
            room -= len(view)
    if gathered:
        yield gathered


def compress_blobs(raw: bytes | memoryview) -> bytes:
    """Compress in one go: images of one library resemble one another over all of a section."""
    window = max(10, min(_BLOB_WINDOW, (len(raw) - 1).bit_length()))
    parameters = zstandard.ZstdCompressionParameters.from_level(_BLOB_LEVEL, source_size=len(raw), window_log=window)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(raw)
