"""Finds the processes that belong to a command, from /proc, and ends those that it left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROC = Path("/proc")
QUIET_SECONDS = 1.0
"""How long processes that the command left behind may take to end by themselves."""
GRACE_SECONDS = 5.0
"""How long a process may take to end after SIGTERM before it gets SIGKILL."""


def _processes() -> Iterator[tuple[int, int, int, str]]:
    """List process id, parent, group and state of every process that can be seen."""
    try:
        numbers = [path.name for path in PROC.iterdir() if path.name.isdigit()]
    except OSError:
        return  # a container without /proc
    for number in numbers:
        try:
            text = (PROC / number / "stat").read_text(errors="replace")
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        yield int(number), int(fields[1]), int(fields[2]), fields[0]


def below(root: int, *, excluding: frozenset[int] = frozenset()) -> set[int]:
    """Find the living descendants of a process, without itself, without `excluding` and what lies below those."""
    children: dict[int, list[int]] = {}
    dead = set()
    for process, parent, _, state in _processes():
        children.setdefault(parent, []).append(process)
        if state in "ZX":
            dead.add(process)
    found: set[int] = set()
    waiting = [root]
    while waiting:
        for process in children.get(waiting.pop(), ()):
            if process not in found and process not in excluding:
                found.add(process)
                waiting.append(process)
    return found - dead


def of_session(marker: str, group: int) -> set[int]:
    """Find living processes in that group, or that were executed with `marker` (`NAME=value`) in their environment."""
    wanted = os.fsencode(marker)
    found = set()
    for process, _, of_group, state in _processes():
        if state in "ZX" or process == os.getpid():
            continue
        if of_group == group or wanted in _environment(process):
            found.add(process)
    return found


def _environment(process: int) -> list[bytes]:
    try:
        return (PROC / str(process) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def end(
    find: Callable[[], set[int]],
    *,
    reap: Callable[[], None] = lambda: None,
    quiet: float = QUIET_SECONDS,
    grace: float = GRACE_SECONDS,
) -> int:
    """Wait for the found processes, then SIGTERM, then SIGKILL. Return how many had to be told."""
    if not _wait_until_gone(find, reap, quiet):
        told = find()
        _signal_all(told, signal.SIGTERM)
        if not _wait_until_gone(find, reap, grace):
            left = find()
            told |= left
            _signal_all(left, signal.SIGKILL)
            _wait_until_gone(find, reap, grace)
        return len(told)
    return 0


def _signal_all(processes: set[int], number: int) -> None:
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, number)
            if number == signal.SIGTERM:
                os.kill(process, signal.SIGCONT)


def _wait_until_gone(find: Callable[[], set[int]], reap: Callable[[], None], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    pause = 0.005
    while True:
        reap()
        if not find():
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.1)
