"""Builds archives piece by piece, sound or broken on purpose, with all that depends on a broken piece made to fit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import zstandard

from foundry.archive.layout import CRITICAL, END_MAGIC, ENTRY, FOOTER, HEADER, MAGIC, MAJOR, MINOR
from foundry.archive.writer import ArchiveStream
from foundry.model import Capture


@dataclass(frozen=True)
class Piece:
    """A section. `stored` is its frame; the other fields are what the table says, None = the truth."""

    kind: int
    process: int
    data: bytes
    flags: int = CRITICAL
    stored: bytes | None = None
    raw: int | None = None
    digest: bytes | None = None
    offset: int | None = None
    stored_size: int | None = None
    zero: int = 0

    @property
    def frame(self) -> bytes:
        return zstandard.ZstdCompressor().compress(self.data) if self.stored is None else self.stored


def pieces_of(capture: Capture) -> list[Piece]:
    """The sections of a capture's archive."""
    stream = ArchiveStream(capture)
    stored = list(stream)[1:-2]
    unpack = zstandard.ZstdDecompressor().decompress
    return [
        Piece(section.kind, section.process, unpack(frame), section.flags, frame)
        for section, frame in zip(stream.sections, stored, strict=True)
    ]


def build(
    pieces: Iterable[Piece],
    *,
    major: int = MAJOR,
    minor: int = MINOR,
    header: bytes | None = None,
    gap: bytes = b"",
    count: int | None = None,
    identity: bytes | None = None,
    table_at: int | None = None,
    footer_version: tuple[int, int] | None = None,
) -> bytes:
    """Put an archive together; `gap` stands before the table."""
    start = HEADER.pack(MAGIC, major, minor, 0, 0, 0) if header is None else header
    body, table, name = start, b"", hashlib.sha256(b"foundry capture 1\n")
    total = 0
    for piece in pieces:
        frame = piece.frame
        raw = len(piece.data) if piece.raw is None else piece.raw
        digest = hashlib.sha256(piece.data).digest() if piece.digest is None else piece.digest
        offset = len(body) if piece.offset is None else piece.offset
        size = len(frame) if piece.stored_size is None else piece.stored_size
        table += ENTRY.pack(piece.kind, piece.flags, piece.process, piece.zero, offset, size, raw, digest)
        if piece.flags & CRITICAL:
            name.update(piece.kind.to_bytes(4, "little") + piece.process.to_bytes(4, "little"))
            name.update(raw.to_bytes(8, "little") + digest)
        body += frame
        total += 1
    body += gap
    return (
        body
        + table
        + FOOTER.pack(
            len(body) if table_at is None else table_at,
            total if count is None else count,
            0,
            hashlib.sha256(start + table).digest(),
            name.digest() if identity is None else identity,
            *(footer_version or (major, minor)),
            0,
            END_MAGIC,
        )
    )


def changed(pieces: Sequence[Piece], kind: int, **fields: object) -> list[Piece]:
    """The pieces with fields of the first one of that kind replaced; new data gets a new frame."""
    result = list(pieces)
    at = next(index for index, piece in enumerate(result) if piece.kind == kind)
    if "data" in fields:
        fields.setdefault("stored", None)
    result[at] = replace(result[at], **fields)  # type: ignore[arg-type]
    return result
