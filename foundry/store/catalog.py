"""What the store holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foundry.errors import ArchiveError
from foundry.store.key import SUFFIX, CommandKey
from foundry.store.location import Location

if TYPE_CHECKING:
    from foundry.archive import Summary

PARTIAL_SECONDS = 3600.0


@dataclass(frozen=True)
class Entry:
    """An archive in the store. `fault` says why it cannot be read; then there is no summary."""

    path: Path
    size: int
    written: float
    summary: Summary | None
    fault: str = ""


def entries(location: Location) -> Iterator[Entry]:
    """List the archives of the store, newest first."""
    from foundry import archive

    found = [path for folder in location.folders for path in folder.glob(f"*{SUFFIX}")]
    files = [(path, path.stat()) for path in found if path.is_file()]
    for path, status in sorted(files, key=lambda file: (-file[1].st_mtime, file[0].name)):
        try:
            yield Entry(path, status.st_size, status.st_mtime, archive.summary(path))
        except ArchiveError as error:
            yield Entry(path, status.st_size, status.st_mtime, None, str(error))


def remove_partial(location: Location) -> None:
    """Remove what a writer that was killed left unfinished: nobody writes an archive for that long."""
    for path in location.writable.glob(".foundry-*.partial"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > PARTIAL_SECONDS:
                path.unlink()


def relatives(location: Location, key: CommandKey) -> list[Path]:
    """List archives of the same command from another folder, for another GPU, or of another rank."""
    found = [path for folder in location.folders for path in folder.glob(f"{key.family}*{SUFFIX}")]
    return sorted(path for path in found if path.name != key.name)


def lookup(location: Location, key: CommandKey) -> Path | None:
    """Find the archive of exactly this command."""
    return next((path for folder in location.folders if (path := folder / key.name).is_file()), None)
