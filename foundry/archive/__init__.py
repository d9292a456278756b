"""The archive: the one durable format, see `format_spec/archive.md`.

The functions import what they need when they are called, so that `summary` costs neither numpy nor the model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from foundry.archive.summaries import DeviceSummary, ProcessSummary, SectionSummary, Summary

if TYPE_CHECKING:
    from foundry.model import Capture

__all__ = ["DeviceSummary", "ProcessSummary", "SectionSummary", "Summary", "read", "summary", "write"]


def write(capture: Capture, path: Path, *, force: bool = False) -> str:
    """Write an archive under its final name only when it is whole, and return its capture id (hex).

    Raises ArchiveExistsError unless force, and DiskFullError with what stood there before still standing.
    """
    from foundry.archive.writer import write_archive

    return write_archive(capture, path, force=force)


def read(path: Path) -> Capture:
    """Read an archive. Whatever is wrong with the file is an ArchiveError with a finding code."""
    from foundry.archive.reader import read_archive

    return read_archive(path)


def summary(path: Path) -> Summary:
    """Read only the header, the table of contents and the summary section."""
    from foundry.archive.brief import read_summary

    return read_summary(path)
