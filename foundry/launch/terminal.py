"""The controlling terminal, lent to the command while it runs, so that Ctrl-C and Ctrl-Z reach it and it may read."""

from __future__ import annotations

import contextlib
import os
import signal


class Terminal:
    """The controlling terminal, if this process is in its foreground; else every method does nothing."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._group = os.getpgrp()
        try:
            file = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return
        # Without this a process in the background is stopped when it hands over the terminal, or writes to it.
        self._previous = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        self._file = file

    @property
    def present(self) -> bool:
        """Whether there is a controlling terminal."""
        return self._file is not None

    def in_foreground(self) -> bool:
        """Whether the terminal now belongs to this process's group."""
        if self._file is None:
            return False
        try:
            return os.tcgetpgrp(self._file) == self._group
        except OSError:
            return False

    def give_to(self, group: int) -> bool:
        """Make another group the foreground one, if this process's group is it now."""
        if self._file is None or not self.in_foreground():
            return False
        with contextlib.suppress(OSError):
            os.tcsetpgrp(self._file, group)
            return True
        return False

    def take_back(self, group: int) -> None:
        """Make this process's group the foreground one again, if the other group is it now."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            if os.tcgetpgrp(self._file) in (group, 0) or not _alive(os.tcgetpgrp(self._file)):
                os.tcsetpgrp(self._file, self._group)

    def close(self) -> None:
        """Let go of the terminal."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            signal.signal(signal.SIGTTOU, self._previous)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
