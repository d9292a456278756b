"""Which files of some folders were opened: the kernel tells, by inotify. Access times don't: most mounts keep few."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections.abc import Iterable
from pathlib import Path

_OPEN = 0x00000020
_ONLY_FOLDERS = 0x01000000
_NO_LINKS = 0x02000000
_OVERFLOW = 0x00004000
_OF_FOLDER = 0x40000000
_NONBLOCK = os.O_NONBLOCK | os.O_CLOEXEC
_SHARE = 4
"""Of the watches that a user may have, one in so many: the command may need some."""
_HEAD = struct.Struct("iIII")


class Watch:
    """Notes what is opened in folders from now on, whoever opens it. `close` it."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._names: dict[int, str] = {}
        self._opened: set[str] = set()
        self._lost = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = self._stopper = -1
        library = ctypes.CDLL(None, use_errno=True)
        wanted = list(folders)
        self._handle = library.inotify_init1(_NONBLOCK) if wanted else -1
        most = _most() if self._handle >= 0 else 0
        for folder in wanted[:most]:
            number = library.inotify_add_watch(
                self._handle, os.fsencode(folder), ctypes.c_uint32(_OPEN | _ONLY_FOLDERS | _NO_LINKS)
            )
            if number >= 0:
                self._names[number] = folder
        self._blind = set(wanted) - set(self._names.values())

    def listen(self) -> None:
        """Keep the kernel's queue from overflowing. Call it after every fork, once or more."""
        if self._thread or self._handle < 0:
            return
        self._stop, self._stopper = os.pipe()
        self._thread = threading.Thread(target=self._listen, name="foundry-caches", daemon=True)
        self._thread.start()

    def opened(self) -> set[str]:
        """Give the paths of what was opened so far."""
        self._take()
        with self._lock:
            return set(self._opened)

    def is_blind(self, folder: str) -> bool:
        """Whether it is not known what was opened in the folder: it could not be watched, or too much happened."""
        return self._lost or folder in self._blind

    def close(self) -> None:
        """Watch no longer."""
        if self._thread:
            os.write(self._stopper, b".")
            self._thread.join()
            os.close(self._stopper)
            os.close(self._stop)
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def _listen(self) -> None:
        """Empty the kernel's queue before it is full."""
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        poll.register(self._stop, select.POLLIN)
        while True:
            if any(handle == self._stop for handle, _ in poll.poll()):
                return
            self._take()

    def _take(self) -> None:
        while self._handle >= 0:
            with self._lock:
                try:
                    data = os.read(self._handle, 1 << 16)
                except OSError:
                    return
                self._note(data)

    def _note(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            number, mask, _, length = _HEAD.unpack_from(data, at)
            name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
            at += _HEAD.size + length
            if mask & _OVERFLOW:
                self._lost = True
            elif name and not mask & _OF_FOLDER and number in self._names:
                self._opened.add(f"{self._names[number]}/{os.fsdecode(name)}")


def _most() -> int:
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_watches").read_text(encoding="ascii")) // _SHARE
    except (OSError, ValueError):
        return 1024
