"""The store, the temporary folder, and what killed captures left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from foundry.errors import FoundryError
from foundry.session import packing, workspace
from foundry.session.doctor.check import Check, Surroundings, bad, good, note
from foundry.session.words import count, readable_size
from foundry.store import location

LEAST_ROOM = 1 << 30
"""Bytes that the archive and images of a large server may take."""


def store(here: Surroundings) -> Iterator[Check]:
    """Tell where archives go, and how much room there is."""
    try:
        place = location.find(here.environment)
    except FoundryError as error:
        yield bad("store", str(error), error.hint or "set `XDG_CACHE_HOME` to a folder of yours")
        return
    archives = sum(1 for folder in place.folders for _ in folder.glob("*.fdry"))
    free = _room(place.writable)
    found = f"{place.folder}, {count(archives, 'archive')}, {readable_size(free)} free"
    if place.note:
        yield note("store", place.note, "set `XDG_CACHE_HOME` to a folder of yours")
    elif free < LEAST_ROOM:
        yield note("store", found, "make room, or set `XDG_CACHE_HOME` to a folder with more")
    else:
        yield good("store", found)


def temporary(_: Surroundings) -> Iterator[Check]:
    """Tell where processes record."""
    folder = workspace.temporary_folder()
    if folder is None:
        yield bad("temporary folder", "none that can be written", "set `TMPDIR` to a folder with room")
        return
    free = _room(folder)
    found = f"{folder}, {readable_size(free)} free"
    if free < LEAST_ROOM:
        yield note("temporary folder", found, "make room, or set `TMPDIR` to a folder with more")
    else:
        yield good("temporary folder", found)


def left_over(_: Surroundings) -> Iterator[Check]:
    """Name the session folders of killed captures."""
    for one in workspace.left_overs():
        what = packing.described(one)
        yield note("killed capture", what, f"finish it: `foundry pack {one.folder}`")


def _room(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
