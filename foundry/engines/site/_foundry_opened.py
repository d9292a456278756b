"""Writes down which files this Python process opens, for `foundry capture --prefetch`. Imports nothing.

Python itself tells: it raises an audit event for each file. A hook stays for the life of the process, and is cheap.
"""

import os

MOST = 100_000
"""A process that opens more is no longer starting."""
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Opened:
    """The hook. Each name is written at once, and nothing is held open: programs end, fork and close as they like."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._seen: set[str | bytes] = {log}
        self._done = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Write down a file that is opened to be read."""
        if event != "open" or self._done or len(self._seen) > MOST:
            return
        try:
            path, mode, flags = arguments
            if not isinstance(path, (str, bytes)) or path in self._seen or not _reads(mode, flags):
                return
            self._seen.add(path)
            whole = os.fsencode(os.path.join(os.getcwd(), os.fsdecode(path)))  # noqa: PTH109, PTH118 - imports nothing
            if b"\n" in whole:
                return
            handle = os.open(self._log, _FLAGS)
            try:
                os.write(handle, whole + b"\n")
            finally:
                os.close(handle)
        except Exception:  # such as a log that is gone: its capture has what it wants
            self._done = True


def _reads(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return "r" in mode or "+" in mode
    return isinstance(flags, int) and flags & os.O_ACCMODE != os.O_WRONLY and not flags & os.O_DIRECTORY
