"""A small process that cleans up should Foundry be killed: no process of the command stays, nor a useless folder.

It holds the reading end of a pipe. An orderly end says so through it; when it closes without a word, Foundry is gone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from foundry import env
from foundry.launch import descendants, linux
from foundry.launch.aside import close_all_but

_DONE = b"done"
_NOT_FOR_IT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


class Keeper:
    """The keeper of one session. Start it while this process has one thread.

    `worth_keeping` is asked in the keeper, once the command's processes have ended, whether the folder shall stay.
    """

    def __init__(self, folder: Path, worth_keeping: Callable[[], bool] = lambda: False) -> None:
        read, self._pipe = os.pipe()
        # A signal to all of us must not find the keeper with our handlers.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_IT)
        try:
            self.process = os.fork()
            if self.process == 0:
                _keep(read, self._pipe, folder, worth_keeping)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(read)

    def watch(self, group: int) -> None:
        """Tell which process group the command runs in."""
        os.write(self._pipe, f"{group}\n".encode())

    def dismiss(self) -> None:
        """End the keeper; nothing is left for it to do."""
        with contextlib.suppress(OSError):
            os.write(self._pipe, _DONE)
        os.close(self._pipe)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.process, 0)


def _keep(read: int, write: int, folder: Path, worth_keeping: Callable[[], bool]) -> NoReturn:
    """Live the keeper's whole life; never returns into the caller's code."""
    try:
        os.close(write)
        os.setsid()
        linux.name_process("foundry-keeper")
        for number in _NOT_FOR_IT:
            signal.signal(number, signal.SIG_IGN)
        close_all_but(read)
        said = b""
        while part := os.read(read, 64):
            said += part
        if not said.endswith(_DONE):
            group = int(said.split()[-1]) if said.split() else 0
            _clean_up(group, folder, worth_keeping)
    finally:
        os._exit(0)


def _clean_up(group: int, folder: Path, worth_keeping: Callable[[], bool]) -> None:
    marker = f"{env.SPOOL}={folder / 'spool'}"
    descendants.end(lambda: descendants.of_session(marker, group))
    if not worth_keeping():
        shutil.rmtree(folder, ignore_errors=True)
