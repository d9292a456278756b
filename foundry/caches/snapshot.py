"""What is in the folder of a cache at a moment. Only names and marks; nothing is opened but folders."""

from __future__ import annotations

import os
import posixpath
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

from foundry.caches.below import mark
from foundry.caches.kinds import Folder, is_inside, storable, wanted_name

MOST_FILES = 200_000
"""A folder with more is no cache that could be compared at each start."""

Mark = tuple[int, int, int]


@dataclass
class Snapshot:
    """The files of a cache, by path below its folder, and all folders in it. `fault`: why it could not be looked at."""

    files: dict[str, Mark] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    unnameable: int = 0
    fault: str = ""


def take(folder: Folder, until: float) -> Snapshot:
    """Look at everything below, following no link. A folder that is not there is empty.

    `until`: when it must be done, on the monotonic clock.
    """
    found = Snapshot(fault=folder.fault)
    if found.fault or not Path(folder.path).is_dir():
        return found
    try:
        owner = Path(folder.path).stat().st_uid
    except OSError as error:
        found.fault = f"`{folder.path}`: {error.strerror}"
        return found
    if os.geteuid() != 0 and owner not in (0, os.geteuid()):
        found.fault = f"`{folder.path}` belongs to another user"
        return found
    waiting = [""]
    while waiting:
        if time.monotonic() > until:
            return Snapshot(fault=f"looking at `{folder.path}` takes too long")
        path = waiting.pop()
        found.folders.append(path)
        try:
            entries = list(os.scandir(posixpath.join(folder.path, path)))
        except OSError as error:
            if not path:
                found.fault = f"`{folder.path}`: {error.strerror}"
            continue
        for entry in entries:
            _note(entry, f"{path}/{entry.name}" if path else entry.name, folder, found, waiting)
        if len(found.files) > MOST_FILES:
            return Snapshot(fault=f"`{folder.path}` holds more than {MOST_FILES} files")
    return found


def _note(entry: os.DirEntry[str], path: str, folder: Folder, found: Snapshot, waiting: list[str]) -> None:
    try:
        if entry.is_dir(follow_symlinks=False):
            left_out = path in folder.kind.without or any(is_inside(entry.path, other) for other in folder.others)
            if entry.name == "__pycache__":
                found.folders.append(path)  # what is opened there tells that the source beside it is needed
            elif not left_out and wanted_name(entry.name):
                waiting.append(path)
            return
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return  # gone meanwhile
    if not stat.S_ISREG(status.st_mode) or not wanted_name(entry.name):
        return
    if storable(path):
        found.files[path] = mark(status)
    else:
        found.unnameable += 1
