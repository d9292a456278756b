"""A section that is unpacked a stretch at a time, while another core makes the digest of what was unpacked before."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from foundry.archive.container import Container, Section

SHORT = 1 << 16
"""Bytes of content that are not worth another core."""
_REST = 1 << 20
"""Bytes at a time of what nobody asked for: they fit into the caches of a core, and between them the interpreter has to
be had again, which others hold meanwhile."""
_REPEATED_BLOCK = 1


class Stream:
    """The content of a section in order. What it gives is to be believed only once `finish` returned.

    Memory is that of the two largest stretches. Whatever is wrong with the section is an ArchiveError. `alone`: no
    other core is to help, as all have work.
    """

    def __init__(self, container: Container, section: Section, *, alone: bool = False) -> None:
        self.size = section.raw
        self._container, self._section = container, section
        self._stored = container.frame(section)
        self._reader = container.unpacker(section).stream_reader(self._stored, read_size=len(self._stored))
        self._digest = hashlib.sha256()
        self._left = section.raw
        self._alone = alone or section.raw < SHORT
        self._pool: ThreadPoolExecutor | None = None
        self._buffers = [bytearray(), bytearray()]
        self._hashed: list[Future[None] | None] = [None, None]

    def take(self, size: int) -> memoryview:
        """Unpack the next bytes, of which there must be so many. They stay as they are until the next call."""
        if size > self._left:
            raise ValueError("more than is left")
        earlier = self._hashed[0]
        if earlier is not None:
            earlier.result()
        buffer = self._buffers[0]
        if len(buffer) < size:
            buffer = bytearray(size)
        taken = memoryview(buffer)[:size]
        self._read(taken)
        self._left -= size
        self._buffers = [buffer, buffer] if self._alone else [self._buffers[1], buffer]
        self._hashed = [self._hashed[1], self._hash(taken)]
        return taken

    def finish(self) -> None:
        """Unpack what is left, and check that the section is what the table of contents says."""
        try:
            while self._left:
                self.take(min(self._left, _REST))
            if self._next(memoryview(bytearray(1))) or _frame_size(self._stored) != len(self._stored):
                raise self._damaged()
        finally:
            if self._pool:
                self._pool.shutdown()
        self._container.require_digest(self._section, self._digest.digest())

    def _hash(self, taken: memoryview) -> Future[None] | None:
        if self._alone:
            self._digest.update(taken)
            return None
        if not self._pool:
            # Not before: a restore from a small archive waits for what is imported.
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(1)
        return self._pool.submit(self._digest.update, taken)

    def _read(self, wanted: memoryview) -> None:
        at = 0
        while at < len(wanted):
            found = self._next(wanted[at:])
            if not found:
                raise self._damaged()
            at += found

    def _next(self, wanted: memoryview) -> int:
        try:
            return int(self._reader.readinto(wanted))
        except (zstandard.ZstdError, MemoryError):
            raise self._damaged() from None

    def _damaged(self) -> Exception:
        return self._container.damaged(self._section)


def _frame_size(stored: bytes) -> int:
    """Tell where a frame ends that could be unpacked: its blocks tell their sizes. -1 if it does not end there."""
    at = zstandard.frame_header_size(stored)
    last = 0
    while not last:
        if at + 3 > len(stored):
            return -1
        header = int.from_bytes(stored[at : at + 3], "little")
        last, kind = header & 1, header >> 1 & 3
        at += 3 + (1 if kind == _REPEATED_BLOCK else header >> 3)
    return at + (4 if zstandard.get_frame_parameters(stored).has_checksum else 0)
