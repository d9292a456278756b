"""Makes restore images behind the start of the command that wants them, in a process that the command knows nothing of.

What the command's hook waits for (`native/restore/arrival.cpp`) is a folder beside its spool: `ROLE.image`, a link to
where the image of a process will be, and `lock`, held for as long as this one lives. What went wrong stands in it then.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from foundry import env
from foundry.launch import aside, descendants, linux

FOLDER = "building"
_LOCK = "lock"
_LONGEST_FAULT = 600
_TICK_SECONDS = 0.5
_NO_GROUP = -1

Make = Callable[[], object]


def possible() -> bool:
    """Whether the command will not meet it: orphans must fall to another process than the one that becomes it."""
    return not linux.adopts_orphans()


def begin(session: Path, lock: Path, images: Iterable[Path], make: Make) -> Path:
    """Begin to make images; give the folder for the command's hook. Call it while this process has one thread.

    `images` names where each will be first of all. When `lock` is free and no process of the session lives, `make` is
    interrupted by SystemExit. OSError: nothing was begun.
    """
    folder = session / FOLDER
    folder.mkdir(mode=0o700)
    for image in images:
        (folder / image.name).symlink_to(image)
    opened = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    held = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 3)  # not in the place of a standard one that is closed
    os.close(opened)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        aside.start(lambda: _live(held, lock, f"{env.SPOOL}={session / 'spool'}", make), held)
    finally:
        os.close(held)
    return folder


def fault(session: Path) -> str:
    """Tell what went wrong, as `CODE: text`; empty if nothing did, or it goes on."""
    try:
        return (session / FOLDER / _LOCK).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _live(held: int, lock: Path, marker: str, make: Make) -> None:
    try:
        signal.signal(signal.SIGTERM, _end)
        linux.name_process("foundry-images")
        _watch(lock, marker)
        make()
    except SystemExit:
        pass
    except BaseException as error:
        _tell(held, error)


def _watch(lock: Path, marker: str) -> None:
    """Have this process ended when nobody is left who could want an image."""
    from threading import Thread

    def wait() -> None:
        with suppress(OSError), lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
        # A daemon that closed all its files does not hold the lock.
        while descendants.of_session(marker, _NO_GROUP):
            time.sleep(_TICK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=wait, daemon=True).start()


def _end(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # what is cleaned up now must not be cut short
    raise SystemExit


def _tell(held: int, error: BaseException) -> None:
    text = f"{getattr(error, 'code', 'failed')}: {str(error) or type(error).__name__}"
    if hint := getattr(error, "hint", None):
        text += f" (hint: {hint})"
    os.write(held, " ".join(text.split()).encode()[:_LONGEST_FAULT])
