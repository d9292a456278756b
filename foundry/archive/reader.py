"""From an archive file to a capture that is whole in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from foundry.archive.opened import Opened
from foundry.archive.parallel import beside
from foundry.archive.streams import SHORT

if TYPE_CHECKING:
    from foundry.model import Capture, LibraryPlace

Find = Callable[["LibraryPlace"], bytes]
"""Gives the bytes of a blob that lies in a library file, or raises. They are compared with the blob's digest."""


def read_archive(path: Path, find: Find | None = None) -> Capture:
    """Read and check an archive. Without `find` a blob that is not in it is `blob-outside`."""
    with Opened(path) as opened:
        head = opened.head
        held = beside(lambda: dict(opened.blobs()), small=opened.raw_size < SHORT)
        try:
            processes, start_files = tuple(opened.processes()), opened.start_files
        except BaseException:
            with suppress(Exception):
                held()
            raise
        found = held()
        blobs = [found.get(index, b"") for index in range(len(head.blobs))]
        outside = {index: entry.library for index, entry in enumerate(head.blobs) if entry.library}
        for index, place in outside.items():
            blobs[index] = opened.outside_blob(index, find(place)) if find else opened.blob(index)
        # Not before: numpy is imported while other cores unpack.
        from foundry.model import Capture

        return Capture(
            processes,
            tuple(blobs),
            head.context,
            head.files,
            head.findings,
            head.packages,
            outside,
            start_files,
        )
