"""Puts a file in place as a whole: temp name beside the target, fsync, rename, fsync of the folder."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from foundry.errors import ArchiveExistsError, DiskFullError, FoundryError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def put(path: Path, parts: Iterable[bytes], *, force: bool) -> None:
    """Write the parts to a file of mode 0600 that appears under its name only when all of it is on disk.

    What stood there before stands until then, and if this fails. Without force it is never replaced.
    """
    target = _checked_target(path, force)
    try:
        handle, name = tempfile.mkstemp(prefix=".foundry-", suffix=".partial", dir=target.parent)
    except OSError as error:
        raise _failure(path, error, 0, iter(())) from None
    temporary = Path(name)
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
            with suppress(FileNotFoundError):
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
        needed = reached + sum(len(part) for part in rest)
        return DiskFullError(
            f"cannot write `{path}`: the file system is full; {needed} bytes are needed",
            hint="make room, or write to another file system",
        )
    return FoundryError(f"cannot write `{path}`: {error.strerror}")
