"""The library files that a process had mapped, as a capture names them: no path of the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

from foundry.model import Library

Origin = Callable[[str], tuple[str, str]]
"""From the path of a library file to the Python distribution that it belongs to, and its version; both may be empty."""

LONGEST_NAME = 255
_BUILD_ID = re.compile(r"(?:[0-9a-f]{2}){1,64}")


def of_nobody(path: str) -> tuple[str, str]:
    """Say of every file that no distribution is known for it."""
    return "", ""


def model_libraries(files: Iterable[tuple[str, str]], origin: Origin) -> tuple[Library, ...]:
    """List the libraries in ascending order, each once, however often and in whatever order they were told."""
    found = set()
    for path, build_id in files:
        name = PurePosixPath(path).name.replace("\0", "")[:LONGEST_NAME]
        if name and name not in (".", ".."):
            known = build_id if _BUILD_ID.fullmatch(build_id) else ""
            found.add(Library(name, known, *origin(path)))
    return tuple(sorted(found))
