"""Files of an archive put into the caches of a command before it starts: nothing that is there is replaced."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from foundry.caches.kinds import TIMES, Folder, entry_of
from foundry.caches.note import Noted
from foundry.caches.outcome import Placed
from foundry.caches.placing import Placing


class Item(NamedTuple):
    """A file of the archive. `read` gives its bytes, checked against the digest."""

    cache: str
    path: str
    mode: int
    size: int
    sha256: bytes
    read: Callable[[], bytes]


def place(items: Iterable[Item], folders: Mapping[str, Folder], noted: Noted | None = None) -> Placed:
    """Put what is missing in place. What cannot be placed is a fault in the result, and never an error.

    What is noted and has not changed is not looked at again.
    """
    result = Placed()
    noted = noted or Noted()
    by_cache: dict[str, list[Item]] = {}
    for item in items:
        by_cache.setdefault(item.cache, []).append(item)
    times = by_cache.pop(TIMES, [])
    for name, found in by_cache.items():
        known = noted.marks.get(name)
        folder = folders.get(name)
        if folder is None:  # a cache that is switched off here, or that only a newer Foundry knows
            result.marks[name] = {}
            continue
        if known is not None:
            touched = {entry_of(folder.kind, path) for path in noted.changed[name]}
            result.there += sum(entry_of(folder.kind, path) not in touched for path in known)
            found = [item for item in found if entry_of(folder.kind, item.path) in touched]
        if not _place(name, folder, found, _times_of(name, times), result):
            break
        if name in result.marks and not folder.kind.whole:
            result.marks[name] = {**(known or {}), **result.marks[name]}
    return result


def _place(name: str, folder: Folder, items: list[Item], times: Mapping[str, int], result: Placed) -> bool:
    """Place the files of one cache; False if there is no room for more."""
    placing = Placing(folder, times)
    room = True
    if folder.fault:
        placing.faults.append(folder.fault)
    else:
        try:
            placing.run(items)
        except OSError as error:
            placing.faults.append(f"`{folder.path}`: {error.strerror or error}")
            room = error.errno not in (errno.ENOSPC, errno.EDQUOT)
        if not placing.faults:
            result.marks[name] = placing.marks
    result.faults += [f"{name}: {fault}" for fault in placing.faults]
    result.placed += placing.placed
    result.there += placing.there
    result.kept += placing.kept
    result.size += placing.size
    return room


def _times_of(name: str, files: list[Item]) -> dict[str, int]:
    """Read the times of a cache's files; without them the files are as new as they are."""
    for file in files:
        if file.path == f"{name}.json":
            try:
                found = json.loads(file.read())
            except (ValueError, RecursionError):
                return {}
            if isinstance(found, dict):
                return {path: at for path, at in found.items() if isinstance(at, int) and 0 <= at < 1 << 62}
    return {}
