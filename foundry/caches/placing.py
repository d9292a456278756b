"""The files of one cache being placed: each under its name only when it is whole, by a link, which replaces nothing."""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Protocol

from foundry.caches import note
from foundry.caches.below import Below
from foundry.caches.kinds import OWN_PREFIX, Folder, entry_of, is_head, wanted_name
from foundry.caches.note import Marks
from foundry.caches.relocate import names_paths, relocated

STALE_SECONDS = 3600.0
"""How long a file that is being placed may stand before it is what a killed start left."""
SPARED_BYTES = 1 << 26
"""Room that is left to others: a full disk hurts more than a cold cache."""
TRIES = 3
"""Triton removes a folder that it finds empty, also one that was just made."""


class Wanted(Protocol):
    """A file to be placed."""

    @property
    def path(self) -> str:
        """Its path below the cache's folder."""

    @property
    def mode(self) -> int:
        """Its permissions at capture; only the owner's count."""

    @property
    def size(self) -> int:
        """Its size."""

    @property
    def sha256(self) -> bytes:
        """Its digest."""

    def read(self) -> bytes:
        """Give its bytes, checked."""


class State(Enum):
    """What stands in the place of a file."""

    MISSING = 0
    EQUAL = 1
    OTHER = 2


class Placing:
    """The files of one cache. After `run`, the counts and marks tell how it went; OSError if it could not go on."""

    def __init__(self, folder: Folder, times: Mapping[str, int]) -> None:
        self._folder = folder
        self._times = times
        self._cleaned: set[str] = set()
        self.marks: Marks = {}
        self.faults: list[str] = []
        self.placed = self.there = self.kept = self.size = 0

    def run(self, items: Sequence[Wanted]) -> None:
        """Place each entry, unless something else stands in its place: two halves make no whole."""
        entries: dict[str, list[Wanted]] = {}
        for item in items:
            if all(map(wanted_name, item.path.split("/"))):
                entries.setdefault(entry_of(self._folder.kind, item.path), []).append(item)
        existing = self._folder.path
        while not Path(existing).is_dir() and existing != "/":
            existing = posixpath.dirname(existing)
        missing: list[tuple[list[Wanted], list[Wanted]]] = []
        with Below(existing) as below:
            if existing == self._folder.path:
                missing = [found for entry in entries.values() if (found := self._missing(below, entry))]
            else:
                missing = [(entry, entry) for entry in entries.values()]
        if not missing:
            return
        self._require_room(existing, sum(item.size for _, absent in missing for item in absent))
        with Below(self._folder.path, make=True) as below:
            for entry, absent in missing:
                self._entry(below, entry, absent)
        if self._folder.kind.whole:
            self.marks = {path: [] for path in self.marks if is_head(path)}

    def _missing(self, below: Below, entry: list[Wanted]) -> tuple[list[Wanted], list[Wanted]] | None:
        """Give an entry with those of its files that are to be placed; None if there are none."""
        try:
            if self._folder.kind.whole and (head := self._head(below, entry)):
                self.kept += len(entry)  # it changes with each program that uses it, and leads to their files only
                self.marks[head] = []
                return None
            states = [self._state(below, item) for item in entry]
        except OSError as error:
            self._fault(entry, error)
            return None
        if State.OTHER in states:
            self._keep(below, entry)
            return None
        absent = [item for item, state in zip(entry, states, strict=True) if state is State.MISSING]
        if absent:
            return entry, absent
        self.there += len(entry)
        self._mark(below, entry)
        return None

    def _head(self, below: Below, entry: list[Wanted]) -> str:
        """Name the head of an entry that is there already; empty if none is."""
        for item in entry:
            if is_head(item.path) and self._state(below, item) is not State.MISSING:
                return item.path
        return ""

    def _state(self, below: Below, item: Wanted) -> State:
        try:
            status = below.status(item.path)
        except FileNotFoundError:
            return State.MISSING
        if not stat.S_ISREG(status.st_mode):
            return State.OTHER
        try:
            if names_paths(item.path):
                return State.EQUAL if below.read(item.path, 1 << 30)[0] == self._bytes(item) else State.OTHER
            if status.st_size != item.size:
                return State.OTHER
            same = hashlib.sha256(below.read(item.path, item.size)[0]).digest() == item.sha256
        except FileNotFoundError:
            return State.MISSING
        except OSError:
            return State.OTHER
        return State.EQUAL if same else State.OTHER

    def _bytes(self, item: Wanted) -> bytes:
        data = item.read()
        return (
            relocated(data, posixpath.dirname(f"{self._folder.path}/{item.path}")) if names_paths(item.path) else data
        )

    def _require_room(self, existing: str, size: int) -> None:
        if not os.access(existing, os.W_OK | os.X_OK):
            read_only = os.statvfs(existing).f_flag & os.ST_RDONLY
            number = errno.EROFS if read_only else errno.EACCES
            raise OSError(number, os.strerror(number))
        free = os.statvfs(existing)
        if free.f_bavail * free.f_frsize < size + SPARED_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _entry(self, below: Below, entry: list[Wanted], absent: list[Wanted]) -> None:
        placed = 0
        try:
            for item in sorted(absent, key=lambda item: (is_head(item.path), item.path)):
                if self._put(below, item):
                    placed += 1
                elif self._state(below, item) is State.OTHER:
                    self.placed += placed
                    self._keep(below, entry, less=placed)
                    return
        except OSError as error:
            self.placed += placed
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            self._fault(entry, error)
            return
        self.placed += placed
        self.there += len(entry) - placed
        self._mark(below, entry)

    def _put(self, below: Below, item: Wanted) -> bool:
        """Place one file; False if one has come there meanwhile."""
        data = self._bytes(item)
        for left in reversed(range(TRIES)):
            try:
                return self._link(below, item, data)
            except FileNotFoundError:
                below.forget()
                if not left:
                    raise
        return False

    def _link(self, below: Below, item: Wanted, data: bytes) -> bool:
        above, name = os.path.split(item.path)
        folder = below.folder(above, make=True)
        self._clean(above, folder)
        temporary = f"{OWN_PREFIX}{os.getpid()}.{os.urandom(6).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, 0o600, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb", buffering=0) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
                if item.mode & stat.S_IXUSR:
                    os.fchmod(handle, 0o700)
                if (at := self._times.get(item.path)) is not None:
                    os.utime(handle, ns=(at, at))
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            return False
        finally:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
        self.size += len(data)
        return True

    def _clean(self, path: str, folder: int) -> None:
        """Remove what a start that was killed left, once for each folder."""
        if path in self._cleaned:
            return
        self._cleaned.add(path)
        for name in os.listdir(folder):
            if name.startswith(OWN_PREFIX):
                with suppress(OSError):
                    if time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime > STALE_SECONDS:
                        os.unlink(name, dir_fd=folder)

    def _keep(self, below: Below, entry: list[Wanted], less: int = 0) -> None:
        """Leave an entry to whoever wrote it otherwise, for later starts, too."""
        self.kept += len(entry) - less
        self._mark(below, entry)

    def _mark(self, below: Below, entry: list[Wanted]) -> None:
        for item in entry:
            try:
                self.marks[item.path] = note.of(below.status(item.path))
            except OSError:
                self.marks[item.path] = None

    def _fault(self, entry: list[Wanted], error: OSError) -> None:
        """Tell of an entry that cannot be placed; the first of a cache stands for all."""
        if not self.faults:
            path = posixpath.dirname(f"{self._folder.path}/{entry[0].path}")
            link = error.errno in (errno.ENOTDIR, errno.ELOOP)
            self.faults.append(
                f"`{path}`: " + ("a link or a file is in the way" if link else error.strerror or str(error))
            )
