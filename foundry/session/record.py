"""What a capture notes in its session folder at the start, so that `foundry pack` can finish it should it be killed."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foundry.store.location import write_private

NAME = "session.json"
FORMAT = 1


@dataclass(frozen=True)
class Record:
    """A capture as it was started: its program, what its archive would have been called, and what goes into it."""

    context: dict[str, str]
    program: str
    target: str
    all_kernels: bool
    thin: bool
    started: int
    format: int = FORMAT


def write(folder: Path, record: Record) -> None:
    """Put the record into a session folder."""
    write_private(folder / NAME, json.dumps(asdict(record)).encode())


def read(folder: Path) -> Record | None:
    """Read the record of a session folder; None if it has none that this build understands, or another user's."""
    path = folder / NAME
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return None
        fields: dict[str, Any] = json.loads(path.read_bytes())
        record = Record(**fields)
    except (OSError, ValueError, TypeError):
        return None
    texts = isinstance(record.context, dict) and all(isinstance(text, str) for text in record.context.values())
    sound = texts and isinstance(record.target, str) and isinstance(record.program, str)
    return record if sound and record.format == FORMAT else None
