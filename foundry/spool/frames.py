"""Frames of an `events` file: header, checksum, payload."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from foundry.findings import SPOOL_BAD_CHECKSUM, SPOOL_TORN_TAIL, Finding, Severity
from foundry.model.checksum import crc32c

HEADER = struct.Struct("<HHIQ")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; `start` is where its payload begins in the file."""

    kind: int
    thread: int
    start: int
    payload: bytes


class Frames:
    """Iterates over whole frames with the right checksum; `finding` tells why it ended before the end of the file.

    A file that still grows is read up to the size that it had at the start.
    """

    def __init__(self, file: BinaryIO, where: str) -> None:
        self.file = file
        self.size = file.seek(0, os.SEEK_END)
        self.where = where
        self.finding: Finding | None = None

    @property
    def torn(self) -> bool:
        """Whether the file ends inside a frame."""
        return self.finding is not None and self.finding.code == SPOOL_TORN_TAIL

    def __iter__(self) -> Iterator[Frame]:
        file, size, at = self.file, self.size, 0
        file.seek(0)
        while at < size:
            start = at + HEADER.size
            header = file.read(HEADER.size) if start <= size else b""
            if len(header) < HEADER.size:
                self._torn(at, size)
                return
            kind, thread, checksum, length = HEADER.unpack(header)
            payload = file.read(length) if length <= size - start else None
            if payload is None or len(payload) < length:
                self._torn(at, size)
                return
            if crc32c(payload) != checksum:
                self.finding = Finding(
                    SPOOL_BAD_CHECKSUM,
                    Severity.ERROR,
                    f"frame at byte {at} has a wrong checksum; what follows it was not read",
                    self.where,
                )
                return
            yield Frame(kind, thread, start, payload)
            at = start + length

    def _torn(self, at: int, size: int) -> None:
        self.finding = Finding(
            SPOOL_TORN_TAIL,
            Severity.WARN,
            f"the last frame is incomplete: it starts at byte {at} of {size}",
            self.where,
        )
