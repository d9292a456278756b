"""The private folder of one session: the spool, the status file."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from foundry.errors import FoundryError
from foundry.store.location import Location, make_private

LOCK_NAME = "lock"
FIRST_KEPT_FILE = 100
HALF_MADE_SECONDS = 3600.0


class Workspace:
    """A folder that only this user may enter. It goes when the context ends, or by the keeper if Foundry is killed."""

    def __init__(self) -> None:
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="foundry-"))
            self.spool.mkdir(mode=0o700)
        except OSError as error:
            raise FoundryError(
                f"no temporary folder can be made in `{tempfile.gettempdir()}`: {error.strerror}",
                hint="set `TMPDIR` to a folder that can be written",
            ) from error

    @property
    def spool(self) -> Path:
        """Where hooked processes write."""
        return self.folder / "spool"

    @property
    def status(self) -> Path:
        """Where hooked processes append what they are doing."""
        return self.folder / "status"

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def for_exec(location: Location) -> Path:
    """Make a session folder for a command that this process becomes. Nobody is left to remove it: a later start does.

    A lock on it passes through the exec to the command and all it starts, so that it is never removed while in use.
    """
    fault = make_private(location.sessions)
    if fault:
        raise OSError(fault)
    remove_stale(location)
    hidden = Path(tempfile.mkdtemp(prefix=".", dir=location.sessions))
    (hidden / "spool").mkdir(mode=0o700)
    _lock_for_life(hidden / LOCK_NAME)
    return hidden.rename(hidden.with_name(hidden.name[1:]))


def remove_stale(location: Location) -> None:
    """Remove the session folders of commands that have ended."""
    for folder in location.sessions.iterdir():
        if folder.name.startswith("."):
            stale = time.time() - folder.lstat().st_mtime > HALF_MADE_SECONDS
        else:
            stale = not _locked(folder / LOCK_NAME)
        if stale:
            shutil.rmtree(folder, ignore_errors=True)


def _lock_for_life(path: Path) -> None:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    kept = fcntl.fcntl(file, fcntl.F_DUPFD, FIRST_KEPT_FILE)  # high, and without close-on-exec
    os.close(file)
    fcntl.flock(kept, fcntl.LOCK_EX)


def _locked(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
