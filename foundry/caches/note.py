"""What was placed for an archive, noted beside its restore images, so that a later start need not look again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foundry.caches.kinds import Folder

NAME = "caches"
FORMAT = 2

Mark = list[int]
"""Size and time of a file; empty: that it is there is enough."""
Marks = dict[str, "Mark | None"]
"""By path below a folder: what stands there, None if nothing does and that is meant so."""


@dataclass
class Noted:
    """What a note says of caches whose folders are where they were. `changed`: paths where something else stands now.

    `complete`: it is of all caches of the archive, and nothing has changed.
    """

    marks: dict[str, Marks] = field(default_factory=dict)
    changed: dict[str, set[str]] = field(default_factory=dict)
    complete: bool = False

    @property
    def files(self) -> int:
        """How many files stand where they were noted."""
        return sum(mark is not None for marks in self.marks.values() for mark in marks.values())


def write(beside: Path, marks: Mapping[str, Marks], folders: Mapping[str, Folder], *, complete: bool) -> None:
    """Note it; a note that cannot be written costs later starts their time only."""
    caches = {name: {"folder": _path(folders, name), "files": found} for name, found in marks.items()}
    temporary = beside / f".{NAME}.{os.getpid()}"
    try:
        text = json.dumps({"format": FORMAT, "complete": complete, "caches": caches})
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(beside / NAME)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read(beside: Path, folders: Mapping[str, Folder]) -> Noted:
    """Read it, and look at each file in it."""
    result = Noted()
    try:
        found: dict[str, Any] = json.loads((beside / NAME).read_bytes())
        if found["format"] != FORMAT:
            return Noted()
        for name, cache in found["caches"].items():
            folder = _path(folders, name)
            if cache["folder"] == folder:
                marks: Marks = cache["files"]
                result.marks[name] = marks
                result.changed[name] = {path for path, mark in marks.items() if not _stands(f"{folder}/{path}", mark)}
        result.complete = (
            found["complete"] is True and len(result.marks) == len(found["caches"]) and not any(result.changed.values())
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Noted()
    return result


def of(status: os.stat_result) -> Mark:
    """Make the mark of a file."""
    return [status.st_size, status.st_mtime_ns]


def _path(folders: Mapping[str, Folder], name: str) -> str | None:
    return folders[name].path if name in folders else None


def _stands(path: str, mark: Mark | None) -> bool:
    try:
        seen = of(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return mark is None
    return mark in ([], seen)
