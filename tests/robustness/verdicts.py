"""What each reader makes of the bytes of an archive: `accepted`, or the code of its refusal."""

from __future__ import annotations

import sys
from pathlib import Path

from foundry import archive
from foundry.errors import ArchiveError
from foundry.findings import BLOB_OUTSIDE

sys.path.append(str(Path(__file__).resolve().parents[2] / "format_spec"))

import minireader

ACCEPTED = "accepted"
INSIDE = {
    "archive-content",
    "archive-section-damaged",
    "archive-section-size",
    "archive-section-missing",
    "archive-limit",
    "archive-table",
}
"""Codes for what sections hold: which one is told where several things are wrong depends on the order of reading."""


def of_reader(path: Path) -> str:
    """The reader that takes all of it at once. A thin archive is sound, though this reader lacks some of its blobs."""
    try:
        archive.read(path)
    except ArchiveError as error:
        return ACCEPTED if error.code == BLOB_OUTSIDE else error.code
    return ACCEPTED


def of_opened(path: Path) -> str:
    """The reader that takes it part by part, all parts taken but the summary, which follows from the others."""
    try:
        with archive.open_archive(path) as opened:
            for process in opened.processes():
                del process
            for _ in opened.blobs():
                pass
            opened.check_agreement()
    except ArchiveError as error:
        return error.code
    return ACCEPTED


def of_summary(path: Path) -> str:
    """The reader of header, table and summary."""
    try:
        archive.summary(path)
    except ArchiveError as error:
        return error.code
    return ACCEPTED


def of_small(data: bytes) -> str:
    """The small, independent reader."""
    try:
        minireader.read(data)
    except minireader.Refused as error:
        return str(error.code)
    return ACCEPTED


def contradiction(ours: str, opened: str, small: str) -> str:
    """Say what is wrong with three verdicts on the same bytes, or nothing.

    The small reader does not check all that part 4 of the format asks for, so that it may accept what ours refuses for
    its content, but never the other way round.
    """
    if (ours == ACCEPTED) != (opened == ACCEPTED) or (ours != opened and not {ours, opened} <= INSIDE):
        return f"read as a whole it is {ours}, part by part {opened}"
    if ours == small or (small == ACCEPTED and ours == "archive-content") or {ours, small} <= INSIDE:
        return ""
    return f"the reader says {ours}, the small reader {small}"
