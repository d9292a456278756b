"""Packs blobs while the rest of their capture is still made, so that no core waits for that."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from types import TracebackType

from foundry.archive import layout
from foundry.archive.parallel import threads
from foundry.archive.writer import blob_pieces, compress_blobs


class Ahead:
    """BLOBS sections that a capture is likely to begin with, packed or being packed; a writer takes those that it has.

    One core is left to whoever makes the capture.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max(threads() - 1, 1))
        self._begun: list[Future[tuple[bytes, bytes]]] = []

    def __enter__(self) -> Ahead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def begin(self, blobs: Sequence[bytes]) -> None:
        """Begin with the sections that these blobs fill. A later call may give the same blobs and more."""
        whole = sum(map(len, blobs)) // layout.BLOB_CUT
        for pieces in islice(blob_pieces(blobs), len(self._begun), whole):
            self._begun.append(self._pool.submit(_packed, pieces))

    def frame(self, number: int, digest: bytes) -> bytes | None:
        """Wait for a section by its number; None if it was not begun, or has another content."""
        if number >= len(self._begun):
            return None
        found, stored = self._begun[number].result()
        return stored if found == digest else None


def _packed(pieces: Sequence[memoryview]) -> tuple[bytes, bytes]:
    raw = b"".join(pieces)
    return hashlib.sha256(raw).digest(), compress_blobs(raw)
