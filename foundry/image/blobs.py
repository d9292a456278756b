"""The bytes to load: kernel images, and what memory held. Each begins on a page, with zeros up to the next."""

from __future__ import annotations

import numpy as np

from foundry.image import layout
from foundry.model.checksum import crc32c
from foundry.model.tables import Table


class Blobs:
    """Collects blobs, and lays them out without a copy."""

    def __init__(self) -> None:
        self._index: dict[int, int] = {}
        self._blobs: list[bytes] = []

    def add(self, data: bytes, number: int | None = None) -> int:
        """Add a blob and return its index; those with a number are added once."""
        if number is not None and number in self._index:
            return self._index[number]
        self._blobs.append(data)
        if number is not None:
            self._index[number] = len(self._blobs) - 1
        return len(self._blobs) - 1

    @property
    def size(self) -> int:
        """All bytes, with the filling."""
        return sum(-(-len(blob) // layout.BLOB_ALIGNMENT) for blob in self._blobs) * layout.BLOB_ALIGNMENT

    def table(self) -> Table:
        """Lay out the list of blobs."""
        table = np.zeros(len(self._blobs), layout.BLOB)
        table["length"] = [len(blob) for blob in self._blobs]
        pages = -(-table["length"].astype(np.int64) // layout.BLOB_ALIGNMENT)
        table["offset"] = (np.cumsum(pages) - pages) * layout.BLOB_ALIGNMENT
        table["crc32c"] = [crc32c(blob) for blob in self._blobs]
        return table

    def pieces(self) -> list[bytes]:
        """Give their bytes in order, with the filling after each."""
        filled = ((blob, bytes(-len(blob) % layout.BLOB_ALIGNMENT)) for blob in self._blobs)
        return [piece for pair in filled for piece in pair if piece]
