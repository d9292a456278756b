"""Opening what is below a folder without ever leaving it: every step is taken by handle, and no link is followed."""

from __future__ import annotations

import os
import posixpath
import stat
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
PRIVATE = 0o700
TICK_NANOSECONDS = 20_000_000
"""Times of files are no finer than this: one that is younger may change and keep its time."""


class Below:
    """A folder that is held open; a context manager. The handle of the folder that was used last is kept."""

    def __init__(self, path: str, *, make: bool = False) -> None:
        if make:
            _make(path)
        self._root = os.open(path, _FOLDER)
        self._last: tuple[str, int] = ("", -1)
        try:
            require_ours(self._root)
        except OSError:
            os.close(self._root)
            raise

    def __enter__(self) -> Below:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.forget()
        os.close(self._root)

    def forget(self) -> None:
        """Let go of the folder that was used last: it may have been removed."""
        if self._last[1] >= 0:
            os.close(self._last[1])
        self._last = ("", -1)

    def folder(self, path: str, *, make: bool = False) -> int:
        """Give a handle of a folder below, valid until the next call. OSError if a link or a file is in the way."""
        if not path:
            return self._root
        if self._last[0] == path:
            return self._last[1]
        self.forget()
        handle = os.dup(self._root)
        try:
            for part in path.split("/"):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, PRIVATE, dir_fd=handle)
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
                if make:
                    require_ours(handle)
        except BaseException:
            os.close(handle)
            raise
        self._last = (path, handle)
        return handle

    def status(self, path: str) -> os.stat_result:
        """Look at what stands there, be it a link."""
        return os.stat(posixpath.basename(path), dir_fd=self.folder(posixpath.dirname(path)), follow_symlinks=False)

    def read(self, path: str, most: int) -> tuple[bytes, os.stat_result]:
        """Read a regular file as it stood at one moment. OSError if it is none, too large, or changes all the time."""
        folder = self.folder(posixpath.dirname(path))
        for _ in range(3):
            handle = os.open(posixpath.basename(path), _FILE, dir_fd=folder)
            with os.fdopen(handle, "rb", buffering=0) as file:
                before = os.fstat(handle)
                if not stat.S_ISREG(before.st_mode):
                    raise OSError(f"`{path}` is not a regular file")
                if before.st_size > most:
                    raise OSError(f"`{path}` is larger than {most} bytes")
                data = file.readall()
                after = os.fstat(handle)
            young = 0 <= time.time_ns() - after.st_mtime_ns < TICK_NANOSECONDS
            if data is not None and mark(before) == mark(after) and len(data) == after.st_size and not young:
                return data, after
            time.sleep(TICK_NANOSECONDS / 1e9)
        raise OSError(f"`{path}` is being written")


def mark(status: os.stat_result) -> tuple[int, int, int]:
    """Tell a file from what it may become."""
    return status.st_ino, status.st_size, status.st_mtime_ns


def require_ours(handle: int) -> None:
    """Raise OSError if the folder belongs to another user, who could put anything into it."""
    if os.geteuid() not in (0, owner := os.fstat(handle).st_uid) and owner != 0:
        raise PermissionError(f"it belongs to another user ({owner})")


def _make(path: str) -> None:
    """Make a folder and those above it, for their owner only."""
    missing = []
    while not Path(path).is_dir():
        missing.append(path)
        path = posixpath.dirname(path)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            Path(folder).mkdir(PRIVATE)
