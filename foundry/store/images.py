"""Restore images made from archives: a cache, safe to delete at any time, safe beside others that start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from foundry.store.location import Location, make_private

SUFFIX = ".image"

Build = Callable[[Path], None]
"""Writes every `<role>.image` into an empty folder."""
Fault = Callable[[Path], str]


def candidates(location: Location, capture_id: str, abi: int) -> list[Path]:
    """Where the images of a capture may be; the last is where they can be made."""
    return [folder / "images" / f"{capture_id[:32]}-{abi}" for folder in location.folders]


def ready(folder: Path, roles: list[str], fault_of: Fault) -> bool:
    """Whether an image of every role is there, and none is damaged."""
    paths = [folder / f"{role}{SUFFIX}" for role in roles]
    return all(path.is_file() and not fault_of(path) for path in paths)


def make(folder: Path, build: Build) -> None:
    """Build into a folder beside it, then take its place, whatever stood there. OSError if it cannot be written."""
    fault = make_private(folder.parent)
    if fault:
        raise OSError(fault)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(mode=0o700)
    try:
        build(temporary)
        _take_place(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _take_place(new: Path, folder: Path) -> None:
    """Move the old folder away first: a folder cannot be replaced, and a process that mapped a file keeps it."""
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
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
