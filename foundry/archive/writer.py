"""From a capture to an archive file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import zstandard

from foundry.archive import layout
from foundry.archive.brief import encode_summary
from foundry.archive.columns import encode_allocations, encode_bodies, encode_groups
from foundry.archive.container import Section, capture_id
from foundry.archive.layout import FOOTER, HEADER, Kind
from foundry.archive.parameters import encode_parameters
from foundry.archive.process_text import encode_process
from foundry.archive.target import put
from foundry.archive.text import encode
from foundry.archive.timeline import encode_timeline
from foundry.model import Capture, Process
from foundry.model.checks import check_capture
from foundry.model.views import kernel_ids, parameter_sizes

_TEXT_LEVEL = 12
_TABLE_LEVELS = (3, 9)
_BLOB_LEVEL = 12
_BLOB_JOB = 1 << 21
_SMALL = 1 << 20


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
        for kind, process, raw, stored in self._compressed():
            flags = 0 if kind in layout.SKIPPABLE else layout.CRITICAL
            digest = hashlib.sha256(raw).digest()
            self.sections.append(Section(kind, flags, process, at, len(stored), len(raw), digest))
            yield stored
            at += len(stored)
        table = b"".join(section.packed() for section in self.sections)
        yield table
        self.identity = capture_id(self.sections)
        checked = hashlib.sha256(header + table).digest()
        yield FOOTER.pack(
            at, len(self.sections), 0, checked, self.identity, layout.MAJOR, layout.MINOR, 0, layout.END_MAGIC
        )

    def _compressed(self) -> Iterator[tuple[Kind, int, bytes, bytes]]:
        small = list(_small_sections(self._capture))
        for (kind, process, raw), stored in zip(small, _compress_all(small), strict=True):
            yield kind, process, raw, stored
        for raw in blob_cuts(self._capture.blobs):
            yield Kind.BLOBS, layout.WHOLE, raw, _compress_blobs(raw)


def _small_sections(capture: Capture) -> Iterator[tuple[Kind, int, bytes]]:
    yield Kind.SUMMARY, layout.WHOLE, encode(encode_summary(capture))
    yield Kind.CAPTURE, layout.WHOLE, encode(_capture_text(capture))
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


def _capture_text(capture: Capture) -> dict[str, Any]:
    return {
        "processes": len(capture.processes),
        "context": capture.context,
        "blobs": [{"size": len(blob), "sha256": hashlib.sha256(blob).hexdigest()} for blob in capture.blobs],
        "files": [
            {"cache": file.cache, "path": file.path, "mode": file.mode, "blob": file.blob} for file in capture.files
        ],
        "findings": [
            {"code": item.code, "severity": int(item.severity), "text": item.text, "where": item.where}
            for item in capture.findings
        ],
    }


def blob_cuts(blobs: tuple[bytes, ...]) -> Iterator[bytes]:
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


def _compress_all(sections: list[tuple[Kind, int, bytes]]) -> list[bytes]:
    def compress(section: tuple[Kind, int, bytes]) -> bytes:
        return _compress(section[0], section[2])

    if sum(len(raw) for _, _, raw in sections) < _SMALL:
        return [compress(section) for section in sections]
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        return list(pool.map(compress, sections))


def _compress(kind: Kind, raw: bytes) -> bytes:
    levels = (_TEXT_LEVEL,) if kind in layout.TEXT_KINDS else _TABLE_LEVELS
    return min((zstandard.ZstdCompressor(level=level).compress(raw) for level in levels), key=len)


def _compress_blobs(raw: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _BLOB_LEVEL,
        source_size=len(raw),
        window_log=max(10, min(24, (len(raw) - 1).bit_length())),
        job_size=_BLOB_JOB,
        threads=min(16, os.cpu_count() or 1),
        enable_ldm=True,
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(raw)
