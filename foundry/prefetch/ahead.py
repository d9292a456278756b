"""Reads files ahead into the page cache, a little at a time, and stops when nobody waits for them any more."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from foundry.model.files import StartFile

PIECE = 1 << 21
WORKERS = 8
"""Small files cost a disk's latency each, so several are asked for at once. Together with PIECE this bounds what a read
of the command waits behind."""
LOOK_SECONDS = 0.05
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Piece(NamedTuple):
    """Bytes of a file to be read in one go."""

    path: str
    offset: int
    length: int


def pieces(files: Iterable[StartFile], most: int) -> Iterator[Piece]:
    """Cut what was read of the files, in their order, until there are so many bytes."""
    for file in files:
        for offset, length in file.ranges or ((0, file.size),):
            for begin in range(offset, offset + length, PIECE):
                part = min(PIECE, offset + length - begin)
                if part > most:
                    return
                most -= part
                yield Piece(file.path, begin, part)


def read(files: Iterable[StartFile], *, wanted: Callable[[], bool], room: Callable[[], int]) -> int:
    """Read the files ahead while they are `wanted` and there is `room`; return how many bytes were asked for.

    What is in the page cache already costs next to nothing. Nothing of it is an error.
    """
    waiting, lock, stop, done = pieces(files, room()), threading.Lock(), threading.Event(), 0

    def work() -> None:
        nonlocal done
        while not stop.is_set():
            with lock:
                piece = next(waiting, None)
            if piece is None:
                return
            with suppress(OSError, ValueError):
                length = _fetch(piece)
                with lock:
                    done += length

    workers = [threading.Thread(target=work, name="foundry-ahead", daemon=True) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    while workers and not stop.is_set():
        workers[0].join(LOOK_SECONDS)
        workers = [worker for worker in workers if worker.is_alive()]
        if not wanted() or not room():
            stop.set()
    return done


def _fetch(piece: Piece) -> int:
    """Have the kernel read a piece, and wait for its last page: so no more is under way than workers have pieces."""
    if not Path(piece.path).is_file():  # opening may do something with what is none
        return 0
    handle = os.open(piece.path, _FLAGS)
    try:
        status = os.fstat(handle)
        length = min(piece.length, status.st_size - piece.offset)
        if length <= 0 or not stat.S_ISREG(status.st_mode):
            return 0
        os.posix_fadvise(handle, piece.offset, length, os.POSIX_FADV_WILLNEED)
        os.pread(handle, 1, piece.offset + length - 1)
        return length
    finally:
        os.close(handle)
