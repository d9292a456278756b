"""The files of a start in a session: recorded by a capture, read ahead beside a restore. None of it stops a command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foundry.archive import Summary
    from foundry.model import Capture, StartFile
    from foundry.prefetch.recorder import Recorder
    from foundry.session.listener import Listener

LOG = "opened"
SECTION = "prefetch"


class Recording:
    """Which files a command reads until its archive is first written."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        from foundry.prefetch.recorder import Recorder

        self.log = folder / LOG
        self.log.touch(mode=0o600)
        self._home = environment.get("HOME", "")
        self._recorder: Recorder | None = Recorder(self.log, without=[folder])
        self._files: tuple[StartFile, ...] | None = None

    def look(self, processes: Callable[[], Iterable[int]]) -> None:
        """Look at the processes of the command; a fault ends the recording and not the capture."""
        if self._recorder and self._files is None:
            try:
                self._recorder.look(processes)
            except Exception:
                self._recorder = None

    def added(self, capture: Capture, listener: Listener) -> Capture:
        """Add what was read up to the first call."""
        if self._files is None:
            self._files = ()
            if self._recorder is None:
                listener.warn("which files the command reads could not be recorded")
            else:
                self._files = self._recorder.files(self._home)
        return replace(capture, start_files=self._files)


def begin(path: Path, summary: Summary, environment: Mapping[str, str]) -> None:
    """Read the files of an archive's start ahead beside the command that is about to start, if it has any."""
    if not any(section.kind == SECTION for section in summary.sections):
        return
    from foundry.launch import aside

    def live() -> None:
        from foundry.archive import open_archive
        from foundry.prefetch import background

        def files() -> Sequence[StartFile]:
            with open_archive(path) as opened:
                return opened.start_files

        background.live(command, files, environment)

    with suppress(OSError):  # no process to spare, or no way to tell when the command ends: it starts all the same
        command = aside.handle_of(os.getpid())
        try:
            aside.start(live, command)
        finally:
            os.close(command)
