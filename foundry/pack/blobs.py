"""One copy of equal bytes, over all processes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


class BlobStore:
    """Collects blobs; equal bytes get the same index."""

    def __init__(self, blobs: Iterable[bytes] = ()) -> None:
        self.blobs: list[bytes] = []
        self._index: dict[bytes, int] = {}
        for data in blobs:
            self._index.setdefault(hashlib.sha256(data).digest(), len(self.blobs))
            self.blobs.append(data)

    def add(self, data: bytes) -> int:
        """Add bytes and return their index."""
        digest = hashlib.sha256(data).digest()
        index = self._index.setdefault(digest, len(self.blobs))
        if index == len(self.blobs):
            self.blobs.append(data)
        return index
