"""Records the files that a command reads, in the order in which they are first seen, while it runs."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from foundry.model.file_checks import LONGEST_PATH, MOST_RANGES, MOST_START_FILES
from foundry.model.files import StartFile
from foundry.prefetch import seen
from foundry.prefetch.paths import shortened
from foundry.prefetch.seen import BLOCK

SHARE = 20
"""Looking takes at most one in so many seconds."""
LEAST_SECONDS = 0.1
LARGE = 1 << 26
"""A file that is larger was not read whole just because it was opened."""
GAP = 1 << 18
"""Ranges that are not farther apart are read as one: that takes a disk less long than two."""


Blocks = npt.NDArray[np.int64]


@dataclass
class _File:
    """What was seen of a file.

    `at`: how far reads got, `most`: bytes that a process had read that held it, `mapped`: the last look at which it was
    in the memory of one.
    """

    opened: bool = False
    code: bool = False
    at: int = 0
    most: int = 0
    mapped: int = 0
    blocks: Blocks = field(default_factory=lambda: np.empty(0, np.int64))


class Recorder:
    """Looks at the processes of a command from time to time.

    Python processes that write the names of what they open to `log` (see `engines/site`) are believed, too: a file that
    is read and closed within a millisecond is not seen otherwise.
    """

    def __init__(self, log: Path, *, without: Iterable[Path] = ()) -> None:
        self._log = log
        self._read = 0
        self._without = tuple(f"{path}/" for path in without)
        self._files: dict[str, _File] = {}
        self._next = 0.0
        self._looks = 0

    def look(self, processes: Callable[[], Iterable[int]]) -> None:
        """Look at the processes, unless that was done a moment ago."""
        begin = time.monotonic()
        if begin < self._next:
            return
        self._looks += 1
        for process in sorted(processes()):
            self._look_at(process)
        self._read_log()
        end = time.monotonic()
        self._next = end + max(LEAST_SECONDS, SHARE * (end - begin))

    def files(self, home: str) -> tuple[StartFile, ...]:
        """List what was seen up to now and is a file, in the order in which it was first seen."""
        self._read_log()
        result: list[StartFile] = []
        ranges = 0
        for path, found in self._files.items():
            try:
                status = Path(path).stat()
            except (OSError, ValueError):
                continue
            if not stat.S_ISREG(status.st_mode) or not status.st_size:
                continue
            parts = self._parts(path, found, status.st_size)
            if parts is None:
                continue
            ranges += len(parts)
            if len(result) == MOST_START_FILES or ranges > MOST_RANGES:
                break
            result.append(StartFile(shortened(path, home), status.st_size, parts))
        return tuple(file for file in result if len(file.path) <= LONGEST_PATH)

    def _look_at(self, process: int) -> None:
        for part in seen.mapped(process):
            if found := self._file(part.path):
                found.code = found.code or part.code
                found.mapped = self._looks
                found.blocks = np.union1d(found.blocks, part.blocks)
        read = seen.bytes_read(process)
        for one in seen.held(process):
            if found := self._file(one.path):
                found.opened = True
                found.at, found.most = max(found.at, one.at), max(found.most, read)

    def _read_log(self) -> None:
        try:
            with self._log.open("rb") as file:
                file.seek(self._read)
                data = file.read()
        except OSError:
            return
        whole, end, _ = data.rpartition(b"\n")
        self._read += len(whole) + len(end)
        for line in whole.splitlines():
            path = os.path.normpath(os.fsdecode(line))
            if seen.is_ordinary(path) and (found := self._file(path)):
                found.opened = True

    def _parts(self, path: str, found: _File, size: int) -> tuple[tuple[int, int], ...] | None:
        """Tell which bytes of a file were read; empty if all, None if there is no sign of any."""
        opened = found.opened and not found.code
        if opened and (size <= LARGE or found.at * 2 >= size or _may_be_read_by_place(found, size)):
            return ()
        gone = not found.code and found.mapped < self._looks
        if gone and not found.at and seen.is_cached(path, size):
            return ()
        blocks = np.union1d(found.blocks, np.arange(found.at // BLOCK + 1)) if opened and found.at else found.blocks
        parts = _joined(blocks, size)
        if not parts:
            return None
        touched = sum(length for _, length in parts)
        return () if touched * 2 >= size and not found.code else parts

    def _file(self, path: str) -> _File | None:
        if path.startswith(self._without):
            return None
        return self._files.setdefault(path, _File())


def _may_be_read_by_place(found: _File, size: int) -> bool:
    """Whether a file may have been read whole by calls that name the place, as a process read so much meanwhile."""
    return not len(found.blocks) and not found.at and found.most >= size


def _joined(blocks: Blocks, size: int) -> tuple[tuple[int, int], ...]:
    numbers = blocks[blocks * BLOCK < size]
    if not len(numbers):
        return ()
    breaks = np.flatnonzero(np.diff(numbers) * BLOCK > GAP + BLOCK)
    firsts, lasts = numbers[np.r_[0, breaks + 1]], numbers[np.r_[breaks, len(numbers) - 1]]
    begins, ends = (firsts * BLOCK).tolist(), np.minimum((lasts + 1) * BLOCK, size).tolist()
    return tuple((begin, end - begin) for begin, end in zip(begins, ends, strict=True))
