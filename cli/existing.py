"""Is there an archive at all where one is named."""

from __future__ import annotations

from pathlib import Path

from foundry.errors import ArchiveNotFoundError


def require(path: Path) -> None:
    """Say where archives are, if there is none at the path."""
    try:
        there = path.exists()
    except (OSError, ValueError):
        return
    if not there:
        raise ArchiveNotFoundError(f"no archive at `{path}`", hint="`foundry list` shows those in the store")
