"""What the process does that reads ahead beside the command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foundry.model.files import StartFile

Files = Callable[[], "Sequence[StartFile]"]
_IO_PRIORITY = {"x86_64": 251, "aarch64": 30}
"""Numbers of the system call `ioprio_set`."""
_OF_A_PROCESS = 1
_LAST_OF_BEST_EFFORT = 2 << 13 | 7
"""Not the idle class: a command that waits for a page which is being read for it would wait for an idle disk."""


def live(command: int, files: Files, environment: Mapping[str, str]) -> None:
    """Read the files ahead until the process of that handle has ended. Runs in a process of its own."""
    _give_way()
    _read(command, files, environment)


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
