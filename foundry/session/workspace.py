"""The private folder of one session: the spool, the status file, and of a capture the record of what it was to be."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from foundry.errors import FoundryError
from foundry.launch.interruption import Interruption
from foundry.session import record
from foundry.session.record import Record
from foundry.store.location import Location, make_private

PREFIX = "foundry-"
LOCK_NAME = "lock"
SPOOL_NAME = "spool"
STATUS_NAME = "status"
EVENTS = "*/events"
LEFT_OVER_SECONDS = 7 * 24 * 3600.0
"""How long what a killed capture left is kept."""
FIRST_KEPT_FILE = 100
HALF_MADE_SECONDS = 3600.0


class Workspace:
    """A folder that only this user may enter. It goes when the context ends, also by a signal while no command runs.

    Should Foundry be killed, the keeper removes it, unless it is a capture's and holds something to pack.
    """

    def __init__(self) -> None:
        self._interruption = Interruption()
        self._interruption.hold()  # no signal comes between making the folder and entering it
        try:
            self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            self.spool.mkdir(mode=0o700)
            self._lock = os.open(self.folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError as error:
            if "folder" in vars(self):
                shutil.rmtree(self.folder, ignore_errors=True)
            self._interruption.end()
            found = temporary_folder()
            where = f"made in `{found}`: {error.strerror}" if found else "found that can be written"
            raise FoundryError(
                f"no temporary folder can be {where}", hint="set `TMPDIR` to a folder that can be written"
            ) from error

    @property
    def spool(self) -> Path:
        """Where hooked processes write."""
        return self.folder / SPOOL_NAME

    @property
    def status(self) -> Path:
        """Where hooked processes append what they are doing."""
        return self.folder / STATUS_NAME

    def note(self, of_capture: Record) -> None:
        """Note what is being captured, for `foundry pack`."""
        try:
            record.write(self.folder, of_capture)
        except OSError as error:
            raise FoundryError(f"`{self.folder}` cannot be written: {error.strerror}") from error

    def worth_keeping(self) -> bool:
        """Whether a process has recorded something here."""
        return record.read(self.folder) is not None and _recorded(self.folder)

    def __enter__(self) -> Workspace:
        try:
            self._interruption.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._interruption.quiet()
        # First, so that a folder that is half removed when Foundry is killed is none to pack.
        (self.folder / record.NAME).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)
        self._interruption.end()


@dataclass(frozen=True)
class LeftOver:
    """The session folder of a capture that was killed."""

    folder: Path
    record: Record
    size: int
    changed: float


def temporary_folder() -> Path | None:
    """Name the folder for temporary files; None where none can be written."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return None


def left_overs() -> list[LeftOver]:
    """Find what killed captures of this user left, newest first. Those that still run are not among them."""
    found = []
    above = temporary_folder()
    for path in above.glob(f"{PREFIX}*/{record.NAME}") if above else ():
        folder = path.parent
        noted = record.read(folder)
        if noted is None or is_running(folder) or not _recorded(folder):
            continue
        try:
            files = [file.lstat() for file in (folder / SPOOL_NAME).rglob("*")]
            changed = max(status.st_mtime for status in files)
        except (OSError, ValueError):
            continue  # somebody removes it just now
        found.append(LeftOver(folder, noted, sum(status.st_size for status in files), changed))
    return sorted(found, key=lambda one: (-one.changed, one.folder))


def remove_old_left_overs() -> None:
    """Remove what captures that were killed long ago left, and before that what holds nothing to pack."""
    for one in left_overs():
        if time.time() - one.changed > LEFT_OVER_SECONDS:
            shutil.rmtree(one.folder, ignore_errors=True)
    above = temporary_folder()
    for path in above.glob(f"{PREFIX}*/{LOCK_NAME}") if above else ():
        if _is_useless(path.parent):
            shutil.rmtree(path.parent, ignore_errors=True)


def _is_useless(folder: Path) -> bool:
    """Whether a session folder of this user was left before anything was recorded, and some time ago."""
    try:
        status = folder.lstat()
        old = time.time() - status.st_mtime > HALF_MADE_SECONDS
        ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and (folder / SPOOL_NAME).is_dir()
    except OSError:
        return False
    return old and ours and not is_running(folder) and (record.read(folder) is None or not _recorded(folder))


def is_running(folder: Path) -> bool:
    """Whether the Foundry that made a session folder still runs."""
    return _locked(folder / LOCK_NAME)


def _recorded(folder: Path) -> bool:
    try:
        return any(path.stat().st_size for path in (folder / SPOOL_NAME).glob(EVENTS))
    except OSError:
        return False


def for_exec(location: Location) -> Path:
    """Make a session folder for a command that this process becomes. Nobody is left to remove it: a later start does.

    A lock on it passes through the exec to the command and all it starts, so that it is never removed while in use.
    """
    fault = make_private(location.sessions)
    if fault:
        raise OSError(fault)
    remove_stale(location)
    hidden = Path(tempfile.mkdtemp(prefix=".", dir=location.sessions))
    (hidden / SPOOL_NAME).mkdir(mode=0o700)
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
