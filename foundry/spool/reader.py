"""A process folder: its events, typed, and its blobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from foundry.errors import SpoolError
from foundry.findings import SPOOL_BAD_FRAME, SPOOL_BROKEN, SPOOL_NO_END, Finding, Severity
from foundry.spool import events
from foundry.spool.blocks import Blocks
from foundry.spool.cursor import Cursor, MalformedError
from foundry.spool.frames import Frames

EVENTS_FILE = "events"
BROKEN_FILE = "broken"


@dataclass(frozen=True, slots=True)
class Entry:
    """An event and the ordinal of the thread that wrote it."""

    thread: int
    event: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Spool:
    """What one process wrote: all whole events in order, and what was wrong with the file."""

    folder: Path
    begin: events.Begin
    entries: list[Entry]
    ended: bool
    torn: bool
    findings: list[Finding]

    def blob(self, number: int) -> bytes | None:
        """Read a blob, or None if the file is missing."""
        try:
            return (self.folder / f"blob.{number}").read_bytes()
        except OSError:
            return None


def process_folders(session: Path) -> list[Path]:
    """List the process folders of a session spool, by name. A process that wrote nothing has none."""
    try:
        return sorted(path for path in session.iterdir() if (path / EVENTS_FILE).is_file())
    except OSError as error:
        raise SpoolError(f"cannot read the spool `{session}`: {error.strerror}") from None


def read_spool(folder: Path) -> Spool | None:
    """Read one process's spool; None if not even its first frame is whole.

    Raises SpoolError if the file cannot be read or is of another build.
    """
    path = folder / EVENTS_FILE
    try:
        with path.open("rb") as file:
            return _read(folder, path, file)
    except OSError as error:
        raise SpoolError(f"cannot read `{path}`: {error.strerror}") from None


def _read(folder: Path, path: Path, file: BinaryIO) -> Spool | None:
    frames = Frames(file, folder.name)
    blocks = Blocks(frames.size)
    findings: list[Finding] = []
    entries: list[Entry] = []
    begin: events.Begin | None = None
    for frame in frames:
        reader = events.READERS.get(frame.kind)
        try:
            if reader is None:
                raise MalformedError(f"kind {frame.kind} is not known")
            event = reader(Cursor(frame.payload, 0, len(frame.payload), blocks, frame.start))
        except MalformedError as error:
            text = f"frame at byte {frame.start}: {error}; what follows it was not read"
            findings.append(Finding(SPOOL_BAD_FRAME, Severity.ERROR, text, folder.name))
            break
        if begin is None:
            begin = _checked(event, path)
        else:
            entries.append(Entry(frame.thread, event))
    if frames.finding:
        findings.append(frames.finding)
    if begin is None:
        return None
    ended = bool(entries) and isinstance(entries[-1].event, events.End)
    if (folder / BROKEN_FILE).exists():
        text = "the spool could not be written on, as on a full disk; what came later is missing"
        findings.append(Finding(SPOOL_BROKEN, Severity.ERROR, text, folder.name))
    elif not ended and not findings:
        text = "the process ended, or still runs, without an orderly end of its spool"
        findings.append(Finding(SPOOL_NO_END, Severity.NOTE, text, folder.name))
    return Spool(folder, begin, entries, ended, frames.torn, findings)


def _checked(event: tuple[object, ...], path: Path) -> events.Begin:
    if not isinstance(event, events.Begin):
        raise SpoolError(f"`{path}` is not a spool: its first frame is not BEGIN")
    if event.abi != events.ABI:
        raise SpoolError(
            f"`{path}` was written by another build: found spool version {event.abi}, expected {events.ABI}",
            hint="capture again; spools are not kept across versions",
        )
    return event
