"""The process that reads ahead: not the command's child, with nothing of its own that the command could notice.

The command waits for what stands here up to its fork, so all else is imported behind it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from foundry.model.files import StartFile

Files = Callable[[], "Sequence[StartFile]"]
_IO_PRIORITY = {"x86_64": 251, "aarch64": 30}
"""Numbers of the system call `ioprio_set`."""
_OF_A_PROCESS = 1
_LAST_OF_BEST_EFFORT = 2 << 13 | 7
"""Not the idle class: a command that waits for a page which is being read for it would wait for an idle disk."""


def begin(files: Files, environment: Mapping[str, str]) -> None:
    """Read the files ahead beside the command that this process is about to start, or to become.

    Returns at once; `files` is called in the new process. That one ends with this process, whatever it has become.
    Call it while this process has one thread. OSError if there can be no such process.
    """
    command = _handle(os.getpid())
    try:
        child = os.fork()
        if child == 0:
            _detach(command, files, environment)
        os.waitpid(child, 0)
    finally:
        os.close(command)


def _handle(process: int) -> int:
    if not hasattr(os, "pidfd_open"):
        raise OSError("this Python cannot tell when a process ends")
    return os.pidfd_open(process)


def _detach(command: int, files: Files, environment: Mapping[str, str]) -> NoReturn:
    """Live the whole life of the new process in a child's child, so that nobody here has to wait for it."""
    try:
        if os.fork() == 0:
            os.setsid()
            _give_way()
            _close_all_but(command)
            _read(command, files, environment)
    finally:
        os._exit(0)


def _read(command: int, files: Files, environment: Mapping[str, str]) -> None:
    import select
    from dataclasses import replace

    from foundry.prefetch import ahead
    from foundry.prefetch.paths import lengthened
    from foundry.prefetch.room import room

    ended = select.poll()
    ended.register(command, select.POLLIN)
    found = [
        replace(file, path=path) for file in files() if (path := lengthened(file.path, environment)) and _is_meant(path)
    ]
    ahead.read(found, wanted=lambda: not ended.poll(0), room=room)


def _is_meant(path: str) -> bool:
    return not path.startswith(("/proc/", "/sys/", "/dev/"))


def _give_way() -> None:
    """Let everyone else come first, on the processors and at the disk."""
    import ctypes
    import platform

    with suppress(OSError):
        os.nice(19)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if number := _IO_PRIORITY.get(platform.machine()):
        ctypes.CDLL(None).syscall(
            ctypes.c_long(number), ctypes.c_int(_OF_A_PROCESS), ctypes.c_int(0), ctypes.c_int(_LAST_OF_BEST_EFFORT)
        )


def _close_all_but(kept: int) -> None:
    """Hold nothing open that a reader of the command's output, or of a lock, waits for the end of."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208 - pathlib is not here yet
        if (number := int(entry)) > 2 and number != kept:
            with suppress(OSError):
                os.close(number)
