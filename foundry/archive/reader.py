"""From an archive file to a capture that is whole in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from foundry.archive.opened import Opened
from foundry.model import Capture, LibraryPlace

Find = Callable[[LibraryPlace], bytes]
"""Gives the bytes of a blob that lies in a library file, or raises. They are compared with the blob's digest."""


def read_archive(path: Path, find: Find | None = None) -> Capture:
    """Read and check an archive. Without `find` a blob that is not in it is `blob-outside`."""
    with Opened(path) as opened:
        head = opened.head
        processes = tuple(opened.processes())
        blobs = [b""] * len(head.blobs)
        for index, data in opened.blobs():
            blobs[index] = data
        outside = {index: entry.library for index, entry in enumerate(head.blobs) if entry.library}
        for index, place in outside.items():
            blobs[index] = opened.outside_blob(index, find(place)) if find else opened.blob(index)
        return Capture(processes, tuple(blobs), head.context, head.files, head.findings, head.packages, outside)
