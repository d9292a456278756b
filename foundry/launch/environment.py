"""The environment of a command: hooked for a capture, hooked for a restore, or plain."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from foundry import env, native
from foundry.errors import NativeLibraryError

_SEPARATORS = re.compile(r"[\s:]")
"""What ends a name in LD_PRELOAD. There is no way to escape it."""


ADAPTERS = Path(__file__).absolute().parents[1] / "engines" / "site"
"""Where a Python process finds what loads the adapters for its engine, and tells what it opens."""


def for_capture(
    base: Mapping[str, str],
    *,
    spool: Path,
    status: Path,
    quiet: bool,
    simulated: bool,
    witness: bool = False,
    opened: Path | None = None,
) -> dict[str, str]:
    """Make the environment under which the hook records. The command is a child of this process.

    `opened`: where Python processes write which files they open.
    """
    result = _hooked(base, simulated, site=opened is not None)
    if opened is not None:
        result[env.OPENED] = str(opened)
    result.update({env.MODE: "capture", env.SPOOL: str(spool), env.STATUS: str(status)})
    result[env.COMMAND] = f"child:{os.getpid()}"
    if witness:
        result[env.WITNESS] = "1"
    if quiet:
        result[env.QUIET] = "1"
    return result


def for_restore(
    base: Mapping[str, str],
    *,
    spool: Path,
    status: Path,
    image: Path,
    quiet: bool,
    simulated: bool,
    building: Path | None = None,
    allowed: Iterable[str] = (),
    check: bool = False,
    only_equal: bool = False,
    early: str = "",
    replaces: bool = False,
) -> dict[str, str]:
    """Make the environment under which the hook answers from the image folder.

    `building`: where the images come in, if they are not there yet.
    `check`: graphs are compared with their witnesses; `only_equal`: and those that cannot be compared are given up.
    `early`: which process begins early, with which devices; `replaces`: this one becomes the command, and is not its
    parent.
    """
    result = _hooked(base, simulated)
    result.update({env.MODE: "restore", env.SPOOL: str(spool), env.STATUS: str(status), env.IMAGE: str(image)})
    if building:
        result[env.BUILDING] = str(building)
    result[env.COMMAND] = f"{'self' if replaces else 'child'}:{os.getpid()}"
    if early:
        result[env.EARLY] = early
    if codes := ",".join(sorted(allowed)):
        result[env.ALLOW] = codes
    if check or only_equal:
        result[env.CHECK] = env.CHECK_ONLY if only_equal else "1"
    if quiet:
        result[env.QUIET] = "1"
    return result


def plain(base: Mapping[str, str], *, simulated: bool = False) -> dict[str, str]:
    """Make the environment without the hook, also where this process itself was started under one."""
    result = {name: value for name, value in base.items() if name not in env.OF_A_SESSION}
    others = _preloaded_by_others(base)
    result.pop(env.PRELOAD, None)
    if others:
        result[env.PRELOAD] = ":".join(others)
    if simulated:
        _put_simulator_first(result)
    if env.PYTHON_PATH in base:
        others = [entry for entry in base[env.PYTHON_PATH].split(":") if entry != _adapters()]
        result.pop(env.PYTHON_PATH)
        if others:
            result[env.PYTHON_PATH] = ":".join(others)
    return result


def _hooked(base: Mapping[str, str], simulated: bool, *, site: bool = False) -> dict[str, str]:
    result = plain(base, simulated=simulated)
    hook = loadable(native.hook_library())
    result[env.PRELOAD] = ":".join([hook, *_preloaded_by_others(base)])
    if site or base.get(env.ADAPTERS) != env.ADAPTERS_OFF:
        # An empty entry would be the working folder, which a program without PYTHONPATH does not have.
        others = [result[env.PYTHON_PATH]] if result.get(env.PYTHON_PATH) else []
        result[env.PYTHON_PATH] = ":".join([_adapters(), *others])
    return result


def _adapters() -> str:
    return loadable(ADAPTERS) if ":" in str(ADAPTERS) else str(ADAPTERS)


def _preloaded_by_others(base: Mapping[str, str]) -> list[str]:
    entries = [entry for entry in _SEPARATORS.split(base.get(env.PRELOAD, "")) if entry]
    return [entry for entry in entries if Path(entry).name != native.HOOK_NAME]


def _put_simulator_first(environment: dict[str, str]) -> None:
    folder = loadable(native.simulator_directory())
    others = [entry for entry in environment.get(env.LIBRARY_PATH, "").split(":") if entry and entry != folder]
    environment[env.LIBRARY_PATH] = ":".join([folder, *others])


def loadable(path: Path) -> str:
    """Name this file or folder so that the loader can read it in a list: itself, or a link in a private folder."""
    if not _SEPARATORS.search(str(path)):
        return str(path)
    for parent in (tempfile.gettempdir(), "/tmp", "/dev/shm"):
        folder = Path(parent) / f"foundry-links-{os.getuid()}"
        if not _SEPARATORS.search(str(folder)) and _private(folder):
            return str(_link(folder, path))
    raise NativeLibraryError(
        f"`{path}` holds a space or a colon, which ends a name in the loader's lists, and no link to it could be made",
        hint="install foundry under a path without spaces, or set `TMPDIR`",
    )


def _private(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _link(folder: Path, target: Path) -> Path:
    import hashlib

    digest = hashlib.sha256(os.fsencode(target)).hexdigest()[:16]
    link = folder / digest / target.name
    link.parent.mkdir(mode=0o700, exist_ok=True)
    if not (link.is_symlink() and link.readlink() == target):
        temporary = link.with_name(f"{link.name}.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        temporary.replace(link)
    return link
