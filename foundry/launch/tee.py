"""Passes a child's output on, byte for byte and at once, while lines of it are looked at."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import termios
from collections.abc import Callable

LONGEST_LINE = 64 * 1024
"""More of a line than this is not looked at; it is passed on all the same."""
_COLOUR = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Tee:
    """One output stream of the child. Where ours is a terminal, the child gets a pseudo terminal."""

    def __init__(self, target: int, on_line: Callable[[str], None]) -> None:
        self._target = target
        self._on_line = on_line
        self._line = b""
        self.open = True
        self.is_terminal = os.isatty(target)
        if self.is_terminal:
            self.source, self.for_child = os.openpty()
            _pass_bytes_through(self.for_child)
            self.copy_window_size()
        else:
            self.source, self.for_child = os.pipe()
        os.set_blocking(self.source, False)

    def started(self) -> None:
        """Close the child's end here once the child has it, so that the end of the stream is seen."""
        os.close(self.for_child)

    def copy_window_size(self) -> bool:
        """Give the pseudo terminal the size of the real one; tell whether it had another."""
        if not (self.is_terminal and self.open):
            return False
        try:
            wanted = fcntl.ioctl(self._target, termios.TIOCGWINSZ, bytes(8))
            if wanted == fcntl.ioctl(self.source, termios.TIOCGWINSZ, bytes(8)):
                return False
            fcntl.ioctl(self.source, termios.TIOCSWINSZ, wanted)
        except OSError:
            return False
        return True

    def pump(self) -> bool:
        """Pass on what is there. False once the stream has ended."""
        while self.open:
            try:
                part = os.read(self.source, 64 * 1024)
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno != errno.EIO:  # a pseudo terminal whose last writer is gone
                    raise
                part = b""
            if not part or not self._pass_on(part):
                self.close()
                return False
            self._look_at(part)
        return False

    def close(self) -> None:
        """Close our end; a child that writes on gets a broken pipe, as it would without us."""
        if self.open:
            self.open = False
            os.close(self.source)
            if self._line:
                self._tell(self._line)
                self._line = b""

    def _pass_on(self, part: bytes) -> bool:
        view = memoryview(part)
        while view:
            try:
                view = view[os.write(self._target, view) :]
            except BlockingIOError:
                os.set_blocking(self._target, True)
            except OSError:
                return False
        return True

    def _look_at(self, part: bytes) -> None:
        *whole, rest = (self._line + part).split(b"\n")
        for line in whole:
            self._tell(line)
        self._line = rest[-LONGEST_LINE:]

    def _tell(self, line: bytes) -> None:
        self._on_line(_COLOUR.sub(b"", line.rstrip(b"\r")[:LONGEST_LINE]).decode(errors="replace"))


def _pass_bytes_through(file: int) -> None:
    """Translate no line ends: the real terminal does, and would do it twice."""
    attributes = termios.tcgetattr(file)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(file, termios.TCSANOW, attributes)
