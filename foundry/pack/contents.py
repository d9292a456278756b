"""What memory that was allocated during captures held when its graphs were made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foundry.findings import (
    CONTENTS_ADDRESSES,
    CONTENTS_FOREIGN,
    CONTENTS_LATE,
    CONTENTS_REPLACED,
    CONTENTS_TOO_LARGE,
    CONTENTS_UNREAD,
    SPOOL_BLOB_MISSING,
    Finding,
    Severity,
)
from foundry.model import NONE, Contents, Device, Range
from foundry.model.pointers import in_arenas
from foundry.model.restorable import Problem
from foundry.pack.blobs import BlobStore
from foundry.spool import events

_UNKNOWN = {
    CONTENTS_TOO_LARGE: "holds more than is kept",
    CONTENTS_FOREIGN: "is of a thread that captured nothing, and may be the program's own",
    CONTENTS_UNREAD: "could not be read when the graph was made",
}


class Recorded:
    """Folds what the hook says of contents. Allocations go by their row; None: of no allocation that stands."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[events.Contents, int | None]] = {}
        self._unknown: dict[int, str] = {}
        self._late: set[int] = set()

    def fold(self, event: events.Contents, row: int | None) -> None:
        """Take one into account: it replaces what was said of that memory before."""
        if event.blob != NONE:
            self._kept[event.address] = (event, row)
        if row is None:
            return
        if event.code:
            self._unknown[row] = event.code if event.code in _UNKNOWN else CONTENTS_UNREAD
        elif self._unknown.pop(row, None):
            self._late.add(row)

    def keep(
        self,
        read: Callable[[int], bytes | None],
        store: BlobStore,
        rows: Sequence[Sequence[int]],
        devices: Sequence[Device],
        ranges: Sequence[Range],
        findings: list[Finding],
        role: str,
    ) -> tuple[tuple[Contents, ...], dict[int, Problem]]:
        """Give the contents that are kept, and what stands against graphs that point to an allocation, by its row.

        `rows` are those of the table of allocations: address, size, taken, ordinal and so on; `ranges` is memory that
        the driver knows besides.
        """
        doubts = {row: Problem(code, f"{_named(rows[row])} {_UNKNOWN[code]}") for row, code in self._unknown.items()}
        for row in sorted(self._late):
            text = f"{_named(rows[row])} was read after its graph was made; it is kept as it was then"
            findings.append(Finding(CONTENTS_LATE, Severity.NOTE, text, role))
        kept = []
        for event, of in self._kept.values():
            data = read(event.blob)
            if data is None or len(data) != event.size:
                text = f"`blob.{event.blob}` is missing from the spool, or is not of {event.size} bytes"
                findings.append(Finding(SPOOL_BLOB_MISSING, Severity.ERROR, text, role))
                if of is not None:
                    doubts[of] = Problem(CONTENTS_UNREAD, f"{_named(rows[of])} could not be read from the spool")
                continue
            if of is not None and _holds_addresses(data, event.address, devices, ranges):
                text = f"{_named(rows[of])} holds addresses of memory, which nobody follows"
                doubts.setdefault(of, Problem(CONTENTS_ADDRESSES, text))
            kept.append((event, of, data))
        replaced = _replaced(rows, {of for _, of, _ in kept if of is not None})
        for row in replaced:
            text = f"{_named(rows[row])} lies where another was made later, and one of them holds what its graph reads"
            doubts.setdefault(row, Problem(CONTENTS_REPLACED, text))
        model = tuple(
            Contents(event.address, event.size, store.add(data)) for event, of, data in kept if of not in replaced
        )
        return model, doubts


def _named(row: Sequence[int]) -> str:
    return f"memory that was allocated during a capture (allocation {row[3]} of {row[1]} bytes)"


def _holds_addresses(data: bytes, address: int, devices: Sequence[Device], ranges: Sequence[Range]) -> bool:
    """Look at words where a pointer would stand. Those before the first and after the last whole one hold none."""
    begin = -address % 8
    if len(data) < begin + 8:
        return False
    words = np.frombuffer(data, "<u8", (len(data) - begin) // 8, begin)
    known = ((item.address, item.size) for item in ranges if item.address)
    return bool(in_arenas(words, devices).any()) or any(
        bool(((words - np.uint64(start)) < np.uint64(size)).any()) for start, size in known
    )


def _replaced(rows: Sequence[Sequence[int]], filled: set[int]) -> set[int]:
    """Rows over which a later one lies, where either was filled."""
    found: set[int] = set()
    for row in filled:
        address, end, device = rows[row][0], rows[row][0] + rows[row][1], rows[row][4]
        over = [
            other
            for other, values in enumerate(rows)
            if values[4] == device and values[0] < end and address < values[0] + values[1]
        ]
        found |= {other for other in over if other < max(over) and (other <= row)}
    return found
