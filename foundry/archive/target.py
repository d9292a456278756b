"""Puts a file in place as a whole: temp name beside the target, fsync, rename, fsync of the folder.

A writer holds a lock on its unfinished file for as long as it works. So a later one knows what a killed one left, and
removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from foundry.errors import ArchiveExistsError, DiskFullError, FoundryError

_FULL = {
    errno.ENOSPC: ("the file system is full", "make room, or write to another file system"),
    errno.EDQUOT: ("the disk quota is used up", "make room, or write to another file system"),
    errno.EFBIG: ("a file may not be that large here", "raise `ulimit -f`, or write to another file system"),
}
_PREFIX, _SUFFIX = ".foundry-", ".partial"


def put(path: Path, parts: Iterable[bytes], *, force: bool) -> None:
    """Write the parts to a file of mode 0600 that appears under its name only when all of it is on disk.

    What stood there before stands until then, and if this fails. Without force it is never replaced.
    """
    target = _checked_target(path, force)
    try:
        _remove_abandoned(target.parent)
        handle, temporary = _unfinished(target.parent)
    except OSError as error:
        raise _failure(path, error, 0, iter(parts)) from None
    written = 0
    source = iter(parts)
    part = b""
    try:
        try:
            for part in source:
                _write(handle, part)
                written += len(part)
            part = b""
            os.fsync(handle)
            _name(temporary, target, force)
        finally:
            os.close(handle)
            with suppress(OSError):
                temporary.unlink()
    except OSError as error:
        raise _failure(path, error, written + len(part), source) from None
    _sync_folder(target.parent)


def _checked_target(path: Path, force: bool) -> Path:
    """Follow links, and refuse what must not be replaced."""
    try:
        target = Path(os.path.realpath(path))
        exists = os.path.lexists(target)
        regular = target.is_file()
    except (OSError, ValueError) as error:
        raise FoundryError(f"cannot write {str(path)!r}: {error}") from None
    if exists and not regular:
        raise FoundryError(f"cannot write `{target}`: it is not a regular file")
    if exists and not force:
        raise ArchiveExistsError(
            f"`{target}` exists already", hint="pass `--force` to replace it, or name another file"
        )
    return target


def _remove_abandoned(folder: Path) -> None:
    """Remove unfinished files that nobody holds. What cannot be locked or removed stays."""
    for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(handle)


def _unfinished(folder: Path) -> tuple[int, Path]:
    """Make an unfinished file and hold it. Until it is held, another writer may remove it: then once more."""
    while True:
        handle, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=folder)
        os.fchmod(handle, 0o600)  # whatever the mask
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _name(temporary: Path, target: Path, force: bool) -> None:
    if not force:
        try:
            os.link(temporary, target)
            return
        except FileExistsError:
            raise ArchiveExistsError(
                f"`{target}` was made by another process meanwhile", hint="pass `--force` to replace it"
            ) from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
    temporary.replace(target)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _failure(path: Path, error: OSError, reached: int, rest: Iterator[bytes]) -> FoundryError:
    """Make the error; where the disk is full, count what the file would have needed."""
    if error.errno in _FULL:
        why, hint = _FULL[error.errno]
        needed = reached + sum(len(part) for part in rest)
        return DiskFullError(f"cannot write `{path}`: {why}; {needed} bytes are needed", hint=hint)
    return FoundryError(f"cannot write `{path}`: {error.strerror}")
