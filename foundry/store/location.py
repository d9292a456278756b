"""Where archives without a name live: the user's cache folder, or a private temporary one if that cannot be had."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from foundry.errors import StoreError

SALT_NAME = ".salt"
_SALT_BYTES = 32


@dataclass(frozen=True)
class Location:
    """The store. Archives are looked for in `folder`; new things go to `writable`, another one where that is read-only.

    `note` says why things are not where a user would look for them, and is empty if they are.
    """

    folder: Path
    writable: Path
    note: str = ""

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder to look into, first match wins."""
        return (self.folder,) if self.folder == self.writable else (self.folder, self.writable)

    @property
    def sessions(self) -> Path:
        """What restored programs write while they run."""
        return self.writable / "sessions"

    def salt(self) -> bytes:
        """Random bytes of this store, made at the first call."""
        for folder in self.folders:
            try:
                return (folder / SALT_NAME).read_bytes()
            except FileNotFoundError:
                continue
        path = self.writable / SALT_NAME
        temporary = path.with_name(f"{SALT_NAME}.{os.getpid()}.{os.urandom(4).hex()}")
        write_private(temporary, os.urandom(_SALT_BYTES))
        try:
            os.link(temporary, path)  # whoever is first names it, and the others use that one
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
        return path.read_bytes()


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)


def find(environment: Mapping[str, str]) -> Location:
    """Find the store of this user, made if need be. StoreError if no folder is safe to use."""
    wanted, why = _wanted(environment)
    if wanted is not None:
        fault = make_private(wanted)
        if not fault:
            return Location(wanted, wanted)
        why = f"`{wanted}` cannot be written ({fault})"
    try:
        fallback = Path(tempfile.gettempdir()) / f"foundry-{os.geteuid()}"
    except OSError as error:
        raise StoreError(f"no folder for archives: {why}, and no temporary folder can be written") from error
    fault = make_private(fallback)
    if fault:
        raise StoreError(
            f"no folder for archives: {why}, and `{fallback}` cannot be used ({fault})",
            hint="set `XDG_CACHE_HOME` to a folder of yours, or name a file: `-o FILE`",
        )
    readable = wanted is not None and trusted(wanted)
    folder = wanted if wanted is not None and readable else fallback
    return Location(folder, fallback, f"{why}; new archives and images go to `{fallback}`")


def trusted(folder: Path) -> bool:
    """Whether nobody but this user and root can have put something into the folder."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def _wanted(environment: Mapping[str, str]) -> tuple[Path | None, str]:
    cache = environment.get("XDG_CACHE_HOME", "")
    if Path(cache).is_absolute():
        return Path(cache) / "foundry", ""
    home = environment.get("HOME", "")
    if Path(home).is_absolute():
        return Path(home) / ".cache" / "foundry", ""
    try:
        import pwd

        home = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return None, "`HOME` is not set and this user has no home folder"
    return Path(home) / ".cache" / "foundry", ""


def make_private(folder: Path) -> str:
    """Make the folder, for its owner only. Return what speaks against using it, empty if nothing does."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return "it is not a folder"
        if status.st_uid != os.geteuid():
            return "it belongs to another user"
        if stat.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            return "it cannot be written"
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return ""
