"""The archive: the one durable format, see `format_spec/archive.md`.

The functions import what they need when they are called, so that `summary` costs neither numpy nor the model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from foundry.archive.summaries import DeviceSummary, ProcessSummary, SectionSummary, Summary

if TYPE_CHECKING:
    from foundry.archive.advance import Ahead
    from foundry.archive.opened import Opened
    from foundry.archive.outlines import Outline
    from foundry.archive.reader import Find
    from foundry.model import Capture

__all__ = [
    "Ahead",
    "DeviceSummary",
    "Find",
    "Opened",
    "Outline",
    "ProcessSummary",
    "SectionSummary",
    "Summary",
    "ahead",
    "open_archive",
    "read",
    "summary",
    "write",
]


def ahead() -> Ahead:
    """Give what packs blobs before the rest of their capture is there; a context manager, to be handed to `write`."""
    from foundry.archive.advance import Ahead

    return Ahead()


def write(capture: Capture, path: Path, *, force: bool = False, ahead: Ahead | None = None) -> str:
    """Write an archive under its final name only when it is whole, and return its capture id (hex).

    Raises ArchiveExistsError unless force, and DiskFullError with what stood there before still standing.
    """
    from foundry.archive.writer import write_archive

    return write_archive(capture, path, force=force, ahead=ahead)


def open_archive(path: Path) -> Opened:
    """Open an archive to read it part by part. What is wrong with the file is an ArchiveError with a finding code."""
    from foundry.archive.opened import Opened

    return Opened(path)


def read(path: Path, find: Find | None = None) -> Capture:
    """Read a whole archive. `find` gives the bytes of a thin one's blobs that lie in library files."""
    from foundry.archive.reader import read_archive

    return read_archive(path, find)


def summary(path: Path) -> Summary:
    """Read only the header, the table of contents and the summary section."""
    with open_archive(path) as opened:
        return opened.summary()
