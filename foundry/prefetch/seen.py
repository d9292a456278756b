"""What /proc tells of the files of a process: which parts of mapped ones it touched, and which it holds open."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
BLOCK = 1 << 16
"""What a touched page stands for. The kernel maps 16 pages around one that is touched, if it has them."""
_ENTRY = 8
_STRETCH = 1 << 30
_PROBES = 100
_TOUCHED = np.uint64(0b11 << 62)
"""Bits of an entry of a pagemap: in memory, and swapped out."""
_MAPPING = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) (....) ([0-9a-f]+) \S+ [1-9]\d* +(/.*)")
_DELETED = b" (deleted)"
_NOT_FILES = ("/proc/", "/sys/", "/dev/")
_WRITE_ONLY = os.O_WRONLY


class Mapped(NamedTuple):
    """A part of a file in the memory of a process. `blocks` are the numbers of its touched blocks in the file."""

    path: str
    code: bool
    blocks: npt.NDArray[np.int64]


class Held(NamedTuple):
    """A file that a process has open. `at` is where it reads next."""

    path: str
    at: int


def is_ordinary(path: str) -> bool:
    """Whether a path may name a file on a disk."""
    return path.startswith("/") and not path.startswith(_NOT_FILES) and "\n" not in path


def mapped(process: int) -> Iterator[Mapped]:
    """List the mappings of files; none if the process is gone, or another user's."""
    folder = PROC / str(process)
    try:
        maps = (folder / "maps").read_bytes()
        pages = os.open(folder / "pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        for begin, end, rights, offset, name in _MAPPING.findall(maps):
            path = os.fsdecode(name)
            if name.endswith(_DELETED) or not is_ordinary(path):
                continue
            first, past = int(begin, 16), int(end, 16)
            for at in range(first, past, _STRETCH):
                touched = _touched(pages, at, min(past, at + _STRETCH)) - first + int(offset, 16)
                yield Mapped(path, b"x" in rights, np.unique(touched // BLOCK))
    except OSError:
        return
    finally:
        os.close(pages)


def _touched(pages: int, begin: int, end: int) -> npt.NDArray[np.int64]:
    """Give the addresses of the pages there that are in memory."""
    entries = np.frombuffer(os.pread(pages, (end - begin) // PAGE * _ENTRY, begin // PAGE * _ENTRY), "<u8")
    return np.flatnonzero(entries & _TOUCHED) * PAGE + begin


def held(process: int) -> Iterator[Held]:
    """List the files that it has open and may read."""
    folder = PROC / str(process)
    try:
        links = list((folder / "fd").iterdir())
    except OSError:
        return
    for link in links:
        with suppress(OSError, ValueError, KeyError):
            path = str(link.readlink())
            if not is_ordinary(path):
                continue
            lines = (folder / "fdinfo" / link.name).read_text(encoding="ascii", errors="replace").splitlines()
            told = dict(line.split(":", 1) for line in lines if ":" in line)
            if int(told["flags"], 8) & os.O_ACCMODE != _WRITE_ONLY:
                yield Held(path, int(told["pos"]))


def bytes_read(process: int) -> int:
    """Count what the process has read by system calls; 0 if that is not told."""
    with suppress(OSError, ValueError, IndexError):
        return int((PROC / str(process) / "io").read_text(encoding="ascii").split("rchar:")[1].split()[0])
    return 0


def is_cached(path: str, size: int) -> bool:
    """Whether nearly all of a file is in the page cache, by a look at some of its pages; False if that is not told."""
    found = 0
    with suppress(OSError, ValueError, AttributeError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            for number in range(_PROBES):
                with suppress(BlockingIOError):
                    found += os.preadv(handle, [bytearray(1)], number * (size - 1) // (_PROBES - 1), os.RWF_NOWAIT)
        finally:
            os.close(handle)
    return found >= _PROBES * 0.9
