"""Restore images made from archives: a cache, safe to delete at any time, safe beside others that start.

Who builds holds a lock on the unfinished folder. So another that wants the same waits and finds it made, and a later
one knows what a killed one left, and removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from foundry.store.location import Location, make_private

SUFFIX = ".image"
_SUFFIX = ".partial"
_WHOLE = "whole"
"""Holds what the images looked like when they were made, or found to be whole."""

WAIT_SECONDS = 60.0
"""How long another start may take to make the same images before this one makes its own."""
_TICK_SECONDS = 0.01

Build = Callable[[Path], None]
"""Writes every `<role>.image` into an empty folder."""
Fault = Callable[[Path], str]
Made = Callable[[], bool]
"""Tells whether the images are there meanwhile."""


def candidates(location: Location, capture_id: str, abi: int, proof: str = "", *, trimmed: bool = False) -> list[Path]:
    """Where the images of a capture, with that proof, may be; the last is where they can be made.

    `trimmed`: those that hold kernel images for graphs alone.
    """
    proven = f"-{sha256(proof.encode()).hexdigest()[:16]}" if proof else ""
    less = "-trimmed" if trimmed else ""
    return [folder / "images" / f"{capture_id[:32]}{proven}-{abi}{less}" for folder in location.folders]


def ready(folder: Path, roles: list[str], fault_of: Fault) -> bool:
    """Whether an image of every role is there, and none is damaged.

    One that is the file that was made or found to be whole is not read again: the hook checks what it uses in any case.
    """
    paths = [folder / f"{role}{SUFFIX}" for role in roles]
    try:
        marks = [_mark(path) for path in paths]
    except OSError:
        return False
    known: set[str] = set()
    with suppress(OSError, ValueError):
        known.update((folder / _WHOLE).read_text(encoding="utf-8").splitlines())
    new = [path for path, mark in zip(paths, marks, strict=True) if mark not in known]
    if any(map(fault_of, new)):
        return False
    if new:
        _note(folder, marks)
    return True


def _mark(path: Path) -> str:
    """Tell a file from what it may become. OSError if it is none."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a file")
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {path.name}"


def _note(folder: Path, marks: list[str]) -> None:
    temporary = folder / f"{_WHOLE}.{os.getpid()}"
    with suppress(OSError):
        temporary.write_text("".join(f"{mark}\n" for mark in marks), encoding="utf-8")
        temporary.replace(folder / _WHOLE)
    with suppress(OSError):
        temporary.unlink(missing_ok=True)


def make(folder: Path, build: Build, made: Made) -> None:
    """Build into a folder beside it, then take its place, whatever stood there. OSError if it cannot be written.

    Nothing is built or moved if another start has made it meanwhile: a folder that others may read stays where it is.
    """
    fault = make_private(folder.parent)
    if fault:
        raise OSError(fault)
    _remove_abandoned(folder.parent)
    temporary, handle = _unfinished(folder)
    placed = False
    try:
        if not made():
            build(temporary)
            _note(temporary, [_mark(path) for path in temporary.glob(f"*{SUFFIX}")])
            _take_place(temporary, folder)
            placed = True
    finally:
        if not placed:  # else the name may be another start's already
            shutil.rmtree(temporary, ignore_errors=True)
        os.close(handle)


def unfinished(folder: Path) -> Path:
    """Name the folder in which the images are as a rule while others of it are not yet made."""
    return folder.with_name(f".{folder.name}{_SUFFIX}")


def _remove_abandoned(parent: Path) -> None:
    """Remove unfinished folders that nobody holds. What cannot be locked or removed stays."""
    for path in parent.glob(f".*{_SUFFIX}"):
        _remove_if_free(path)


def _remove_if_free(path: Path) -> None:
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(handle)


def _unfinished(folder: Path) -> tuple[Path, int]:
    """Make the unfinished folder and hold it, once nobody else does; one of another name if that takes too long."""
    deadline = time.monotonic() + WAIT_SECONDS
    temporary = unfinished(folder)
    handle = -1
    try:
        while True:
            with suppress(FileExistsError):  # `exist_ok` is none where it is gone again before that can be seen
                temporary.mkdir(mode=0o700)
            with suppress(FileNotFoundError):
                handle = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                if _lock(handle, deadline) and _is(handle, temporary):
                    if not any(temporary.iterdir()):
                        return temporary, handle
                    shutil.rmtree(temporary, ignore_errors=True)  # who held it was killed
                handle = _closed(handle)
            if time.monotonic() > deadline:
                temporary = Path(tempfile.mkdtemp(_SUFFIX, f".{folder.name}-", folder.parent))
                deadline = time.monotonic() + WAIT_SECONDS
    except BaseException:  # a signal ends this start, as its command has ended
        _closed(handle)
        _remove_if_free(temporary)
        raise


def _closed(handle: int) -> int:
    with suppress(OSError):
        if handle >= 0:
            os.close(handle)
    return -1


def _lock(handle: int, deadline: float) -> bool:
    """Hold the folder; where a file system knows no locks, it is taken as held."""
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_TICK_SECONDS)
        except OSError:
            return True
        else:
            return True


def _is(handle: int, path: Path) -> bool:
    """Tell whether the path still leads to the open folder: who held it before may have moved or removed it."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False


def _take_place(new: Path, folder: Path) -> None:
    """Move the old folder away first: a folder cannot be replaced, and a process that mapped a file keeps it."""
    old = new.with_name(f"{new.name}.old{_SUFFIX}")
    for _ in range(5):
        try:
            new.rename(folder)
            return
        except OSError:
            shutil.rmtree(old, ignore_errors=True)
            try:
                folder.rename(old)
            except FileNotFoundError:
                continue
            finally:
                shutil.rmtree(old, ignore_errors=True)
    raise OSError(f"`{folder}` is being replaced again and again")
