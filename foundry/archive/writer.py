"""From a capture to an archive file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import zstandard

from foundry.archive import layout
from foundry.archive.brief import encode_summary
from foundry.archive.columns import encode_allocations, encode_bodies, encode_groups
from foundry.archive.container import Section, capture_id
from foundry.archive.heads import encode_head, head_of
from foundry.archive.layout import FOOTER, HEADER, Kind
from foundry.archive.parallel import in_order
from foundry.archive.parameters import encode_parameters
from foundry.archive.process_text import encode_process
from foundry.archive.relocations import encode_relocations
from foundry.archive.target import put
from foundry.archive.text import encode
from foundry.archive.timeline import encode_timeline
from foundry.model import Capture, Process
from foundry.model.checks import check_capture
from foundry.model.views import kernel_ids, parameter_sizes

_TEXT_LEVEL = 12
_TABLE_LEVELS = (3, 9)
_BLOB_LEVEL = 11
_BLOB_WINDOW = 24


def write_archive(capture: Capture, path: Path, *, force: bool) -> str:
    """Write the archive and return its capture id in hexadecimal. Raises ValueError for a capture that is not sound."""
    check_capture(capture)
    stream = ArchiveStream(capture)
    put(path, stream, force=force)
    return stream.identity.hex()


class ArchiveStream:
    """The bytes of an archive, part by part; `identity` and `sections` are known once all parts were taken."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.sections: list[Section] = []
        self.identity = b""

    def __iter__(self) -> Iterator[bytes]:
        header = HEADER.pack(layout.MAGIC, layout.MAJOR, layout.MINOR, 0, 0, 0)
        yield header
        at = len(header)
        for (kind, process, size), digest, stored in in_order(_packed, self._raw_sections()):
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

    def _raw_sections(self) -> Iterator[tuple[Kind, int, bytes]]:
        yield from _small_sections(self._capture)
        outside = self._capture.outside
        stored_blobs = (blob for index, blob in enumerate(self._capture.blobs) if index not in outside)
        for raw in blob_cuts(stored_blobs):
            yield Kind.BLOBS, layout.WHOLE, raw


def _small_sections(capture: Capture) -> Iterator[tuple[Kind, int, bytes]]:
    head = head_of(capture)
    yield Kind.SUMMARY, layout.WHOLE, encode(encode_summary(head, capture.processes))
    yield Kind.CAPTURE, layout.WHOLE, encode(encode_head(head))
    for index, process in enumerate(capture.processes):
        for kind, raw in _process_sections(process):
            yield kind, index, raw
    if any(process.spent for process in capture.processes):
        yield Kind.TIMELINE, layout.WHOLE, encode(encode_timeline(capture))


def _process_sections(process: Process) -> Iterator[tuple[Kind, bytes]]:
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


def blob_cuts(blobs: Iterable[bytes]) -> Iterator[bytes]:
    """Cut all blobs, one after the other, into the raw bytes of BLOBS sections."""
    gathered: list[bytes] = []
    room = layout.BLOB_CUT
    for blob in blobs:
        view = memoryview(blob)
        while len(view) >= room:
            yield b"".join([*gathered, view[:room]])
            view, gathered, room = view[room:], [], layout.BLOB_CUT
        if view:
            gathered.append(bytes(view))
            room -= len(view)
    if gathered:
        yield b"".join(gathered)


def _packed(section: tuple[Kind, int, bytes]) -> tuple[tuple[Kind, int, int], bytes, bytes]:
    """Give what the table says of a section, its digest, and its frame."""
    kind, process, raw = section
    stored = _compress_blobs(raw) if kind == Kind.BLOBS else _compress(kind, raw)
    return (kind, process, len(raw)), hashlib.sha256(raw).digest(), stored


def _compress(kind: Kind, raw: bytes) -> bytes:
    levels = (_TEXT_LEVEL,) if kind in layout.TEXT_KINDS else _TABLE_LEVELS
    return min((zstandard.ZstdCompressor(level=level).compress(raw) for level in levels), key=len)


def _compress_blobs(raw: bytes) -> bytes:
    """Compress in one go: images of one library resemble one another over all of a section."""
    window = max(10, min(_BLOB_WINDOW, (len(raw) - 1).bit_length()))
    parameters = zstandard.ZstdCompressionParameters.from_level(_BLOB_LEVEL, source_size=len(raw), window_log=window)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(raw)
