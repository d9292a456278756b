"""A small picture as a data address: one byte a pixel, with a palette."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]


def png(pixels: npt.NDArray[np.uint8], palette: Sequence[Colour]) -> bytes:
    """Encode rows of palette indices; the last index of the palette is transparent."""
    height, width = pixels.shape
    rows = np.zeros((height, width + 1), np.uint8)
    rows[:, 1:] = pixels
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    opaque = b"\xff" * (len(palette) - 1) + b"\0"
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, data)
        for kind, data in (
            (b"IHDR", head),
            (b"PLTE", b"".join(bytes(colour) for colour in palette)),
            (b"tRNS", opaque),
            (b"IDAT", zlib.compress(rows.tobytes(), 9)),
            (b"IEND", b""),
        )
    )


def address(data: bytes) -> str:
    """Make the data address of a PNG."""
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
