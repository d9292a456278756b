"""Frames of an `events` file: header, checksum, payload."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from foundry.findings import SPOOL_BAD_CHECKSUM, SPOOL_TORN_TAIL, Finding, Severity
from foundry.model.checksum import crc32c

HEADER = struct.Struct("<HHIQ")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; its payload is `data[start:end]` of the file it came from."""

    kind: int
    thread: int
    start: int
    end: int


class Frames:
    """Iterates over whole frames with the right checksum; `finding` tells why it ended before the end of the file."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.where = where
        self.finding: Finding | None = None

    @property
    def torn(self) -> bool:
        """Whether the file ends inside a frame."""
        return self.finding is not None and self.finding.code == SPOOL_TORN_TAIL

    def __iter__(self) -> Iterator[Frame]:
        data, size, at = self.data, len(self.data), 0
        view = memoryview(data)
        while at < size:
            start = at + HEADER.size
            if start > size:
                self._torn(at, size)
                return
            kind, thread, checksum, length = HEADER.unpack_from(data, at)
            if length > size - start:
                self._torn(at, size)
                return
            end = start + length
            if crc32c(view[start:end]) != checksum:
                self.finding = Finding(
                    SPOOL_BAD_CHECKSUM,
                    Severity.ERROR,
                    f"frame at byte {at} has a wrong checksum; what follows it was not read",
                    self.where,
                )
                return
            yield Frame(kind, thread, start, end)
            at = end

    def _torn(self, at: int, size: int) -> None:
        self.finding = Finding(
            SPOOL_TORN_TAIL,
            Severity.WARN,
            f"the last frame is incomplete: it starts at byte {at} of {size}",
            self.where,
        )
