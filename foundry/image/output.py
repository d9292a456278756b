"""Writes a file under its final name only when it is whole, on another core than its caller."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from foundry.errors import DiskFullError, FoundryError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_SHORT = 1 << 20
"""Bytes that are not worth another core."""
_MOST_PARTS = 512


class Output:
    """A new file of that size, which takes its place at the end. What is written must stay as it is until then.

    Where nothing is written there are zeros. DiskFullError or FoundryError, at any call, if it cannot be written.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size
        self._name = path.with_name(f".foundry-{os.getpid()}-{path.name}.partial")
        self._pool: ThreadPoolExecutor | None = None
        self._written: list[Future[None]] = []
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with self._told():
            self._file = os.open(self._name, flags, 0o600)

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
        os.close(self._file)
        with suppress(OSError):
            self._name.unlink()

    def write(self, at: int, *parts: Any) -> None:
        """Write parts one after the other."""
        views = [view for part in parts if (view := memoryview(part).cast("B"))]
        if sum(map(len, views)) < _SHORT:
            self._put(views, at)
            return
        if not self._pool:
            # Not before: a restore from a small archive waits for what is imported.
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(1)
        self._written.append(self._pool.submit(self._put, views, at))

    def finish(self) -> None:
        """Wait until all is written, and give the file its name."""
        for written in self._written:
            written.result()
        with self._told():
            os.ftruncate(self._file, self._size)
            self._name.replace(self._path)

    def _put(self, views: list[memoryview], at: int) -> None:
        with self._told():
            while views:
                done = os.pwritev(self._file, views[:_MOST_PARTS], at)
                at += done
                while views and done >= len(views[0]):
                    done -= len(views.pop(0))
                if done:
                    views[0] = views[0][done:]

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Make an error of the image of what the system says."""
        try:
            yield
        except OSError as error:
            what = f"cannot write the restore image `{self._path}`"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                text = f"{what}: the file system is full; {self._size} bytes are needed"
                raise DiskFullError(text, hint="make room in the cache folder, or set `XDG_CACHE_HOME`") from None
            raise FoundryError(f"{what}: {error.strerror}") from None
