"""The blobs of an archive, one section at a time: contents one after the other, cut into sections without regard."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from foundry.archive import layout
from foundry.archive.container import Container, Section
from foundry.archive.heads import BlobEntry
from foundry.archive.layout import Kind
from foundry.archive.parallel import Handed, in_order
from foundry.archive.streams import SHORT
from foundry.archive.text import ContentError
from foundry.findings import ARCHIVE_CONTENT, BLOB_OUTSIDE

if TYPE_CHECKING:
    from hashlib import _Hash

Part = tuple[int, int, int]
"""Index of a blob, and where its bytes begin and end in a section."""


class Blobs:
    """Reads blobs; keeps no more than the section that was used last. Blobs without bytes are checked at once."""

    def __init__(self, container: Container, entries: Sequence[BlobEntry]) -> None:
        self._container = container
        self._entries = entries
        self.sections = _sections(container)
        self._ends = list(accumulate(0 if entry.library else entry.size for entry in entries))
        self._firsts = [0, *accumulate(section.raw for section in self.sections)]
        total = self._ends[-1] if self._ends else 0
        if total != self._firsts[-1]:
            raise ContentError(f"the list of blobs has {total} bytes, their sections {self._firsts[-1]}")
        self._last: tuple[int, bytes] = (-1, b"")
        for index, entry in enumerate(entries):
            if not entry.size:
                self._require_same(index, hashlib.sha256())

    def blob(self, index: int) -> bytes:
        """Read one blob and check it."""
        self._require_inside(index)
        end, size = self._ends[index], self._entries[index].size
        start, pieces = end - size, []
        number = bisect_right(self._firsts, start) - 1
        while start < end:
            raw, first = self._section(number), self._firsts[number]
            piece = memoryview(raw)[start - first : end - first]
            pieces.append(piece)
            start += len(piece)
            number += 1
        found = b"".join(pieces)
        self._require_same(index, hashlib.sha256(found))
        return found

    def outside(self, index: int, found: bytes) -> bytes:
        """Check what a library file gives for a blob."""
        place = self._entries[index].library
        if place is not None and hashlib.sha256(found).digest() != self._entries[index].sha256:
            where = f"at byte {place.offset} of the library `{place.name}`, build id {place.build_id}"
            text = f"blob {index} is not what lies {where}"
            raise self._container.error(BLOB_OUTSIDE, text)
        return found

    def every(self) -> Iterator[tuple[int, bytes]]:
        """Read all blobs that are there, each with its index; sections are unpacked on several cores."""
        gathered: list[memoryview] = []
        states = self.states()
        each: Callable[..., Iterator[bytes]] = map if self._firsts[-1] < SHORT else in_order
        for number, raw in enumerate(each(lambda number: self.checked(number, states), range(len(self.sections)))):
            for index, start, end in self._parts(number):
                gathered.append(memoryview(raw)[start:end])
                if self._complete(number, index):
                    yield index, b"".join(gathered)
                    gathered = []
        for index, entry in enumerate(self._entries):
            if not entry.size:
                yield index, b""

    def states(self) -> list[Handed[_Hash | None]]:
        """Make what the sections hand on to one another while they are checked, each once and begun in order."""
        states: list[Handed[_Hash | None]] = [Handed() for _ in range(len(self.sections) + 1)]
        states[0].hand(None)
        return states

    def checked(self, number: int, states: list[Handed[_Hash | None]]) -> bytes:
        """Unpack a section, and check its digest and those of the blobs that end in it."""
        before, after = states[number], states[number + 1]
        try:
            raw = self._container.unpacked(self.sections[number])
            self._check(number, raw, before, after)
            return raw
        finally:
            after.hand(None)  # where the check did not come to it

    def _parts(self, number: int) -> Iterator[Part]:
        """Tell which blobs have bytes in a section, and where."""
        first, last = self._firsts[number], self._firsts[number + 1]
        index = bisect_right(self._ends, first)
        while index < len(self._ends):
            end = self._ends[index]
            start = end - self._stored(index)
            if start >= last:
                return
            if start < end:
                yield index, max(start, first) - first, min(end, last) - first
            index += 1

    def _check(self, number: int, raw: bytes, before: Handed[_Hash | None], after: Handed[_Hash | None]) -> None:
        """Check a section's digest, and those of its blobs with the same reading.

        `before` gives the state of the hash of the blob that the section begins inside of, None if that failed; `after`
        is given that of the blob that goes on behind it. Where a blob begins with the section, both share their state.
        """
        whole, view = hashlib.sha256(), memoryview(raw)
        complete: list[tuple[int, _Hash]] = []
        unfinished: _Hash | None = None
        continued: Part | None = None
        for index, start, end in self._parts(number):
            whole.update(view[start:end])
            if self._firsts[number] + start > self._ends[index] - self._stored(index):
                continued = (index, start, end)
                continue
            own = whole.copy() if start == 0 else hashlib.sha256(view[start:end])
            if self._complete(number, index):
                complete.append((index, own))
            else:
                unfinished = own
        self._container.require_digest(self.sections[number], whole.digest())
        for index, own in complete:
            self._require_same(index, own)
        if continued is None:
            after.hand(unfinished)
            return
        index, start, end = continued
        ends_here = self._complete(number, index)
        if ends_here:
            after.hand(unfinished)
        state = before.taken()
        if state is not None:
            state.update(view[start:end])
        if not ends_here:
            after.hand(state)
        elif state is not None:
            self._require_same(index, state)

    def _stored(self, index: int) -> int:
        return 0 if self._entries[index].library else self._entries[index].size

    def _complete(self, number: int, index: int) -> bool:
        return self._ends[index] <= self._firsts[number + 1]

    def _section(self, number: int) -> bytes:
        if self._last[0] != number:
            self._last = (-1, b"")
            self._last = (number, self._container.raw(self.sections[number]))
        return self._last[1]

    def _require_inside(self, index: int) -> None:
        place = self._entries[index].library
        if place is not None:
            text = f"blob {index} is not in it: it lies in the library `{place.name}`, build id {place.build_id}"
            raise self._container.error(BLOB_OUTSIDE, text)

    def _require_same(self, index: int, found: _Hash) -> None:
        if found.digest() != self._entries[index].sha256:
            raise self._container.error(ARCHIVE_CONTENT, f"blob {index} does not match its digest")


def _sections(container: Container) -> list[Section]:
    found = [section for section in container.sections if section.kind == Kind.BLOBS]
    for index, section in enumerate(found):
        whole = section.raw == layout.BLOB_CUT or (index + 1 == len(found) and section.raw)
        if section.process != layout.WHOLE or not whole:
            raise ContentError("blobs are not cut as they must be")
    return found
