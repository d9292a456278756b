"""Files that name others by absolute path, written anew for the folder that they are placed in."""

from __future__ import annotations

import json
import posixpath

PREFIX = "__grp__"
_PATHS = "child_paths"


def names_paths(path: str) -> bool:
    """Whether a file of that name may be one: Triton's list of the files of a kernel, in whatever cache it lies."""
    return posixpath.basename(path).startswith(PREFIX)


def relocated(data: bytes, folder: str) -> bytes:
    """Name the files of a kernel in their new folder, as Triton would have. What is no such list stays as it is."""
    try:
        found = json.loads(data)
        paths = found[_PATHS]
        here = posixpath.basename(folder)
        if list(found) != [_PATHS] or not all(_is_in(path, here) for path in paths.values()):
            return data
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return data
    return json.dumps({_PATHS: {name: f"{folder}/{posixpath.basename(path)}" for name, path in paths.items()}}).encode()


def _is_in(path: object, name: str) -> bool:
    return isinstance(path, str) and posixpath.isabs(path) and posixpath.basename(posixpath.dirname(path)) == name
