"""A process beside the command: no child of it, in no group or session of it, and holding none of its files."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

NOT_FOR_IT = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that go to all of us, and mean the command."""


def start(live: Callable[[], object], kept: int) -> None:
    """Run `live` in a process of its own, which ends with it, and return at once. Of open files it has `kept` alone.

    Call it while this process has one thread. OSError if there can be no such process.
    """
    # A signal must not find it with our handlers.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (*NOT_FOR_IT, signal.SIGTERM))
    try:
        child = os.fork()
        if child == 0:
            _leave(live, kept)
        _, status = os.waitpid(child, 0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if status:
        raise OSError(errno.EAGAIN, "no process for it could be started")


def handle_of(process: int) -> int:
    """Give a file that tells when a process ends (a pidfd). OSError if there can be none."""
    if not hasattr(os, "pidfd_open"):
        raise OSError(errno.ENOSYS, "this Python cannot tell when a process ends")
    return os.pidfd_open(process)


def _leave(live: Callable[[], object], kept: int) -> NoReturn:
    """Live in a child's child, so that nobody has to wait for it; never returns into the caller's code."""
    status = 1
    try:
        os.setsid()
        if os.fork() == 0:
            _live(live, kept)
        status = 0
    finally:
        os._exit(status)


def _live(live: Callable[[], object], kept: int) -> NoReturn:
    try:
        for number in NOT_FOR_IT:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        close_all_but(kept)
        live()
    finally:
        os._exit(0)


def close_all_but(kept: int) -> None:
    """Close what would keep a reader of our output waiting for as long as this process of ours lives."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208 - the command's start waits for what is imported here
        if (number := int(entry)) > 2 and number != kept:
            with suppress(OSError):
                os.close(number)
