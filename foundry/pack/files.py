"""Files of JIT caches beside the processes of a capture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from foundry.model import Capture, File
from foundry.pack.blobs import BlobStore


def with_files(capture: Capture, files: Iterable[tuple[str, str, int, bytes]]) -> Capture:
    """Add files, in the order of their names whatever the order in which they come."""
    store = BlobStore(capture.blobs)
    added = tuple(
        File(cache, path, mode & 0o777, store.add(data))
        for cache, path, mode, data in sorted(files, key=lambda f: f[:2])
    )
    return replace(capture, blobs=tuple(store.blobs), files=(*capture.files, *added))
