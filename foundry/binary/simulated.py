"""Reads the kernels of the simulator's own images, see `native/sim/image_format.h`."""

from __future__ import annotations

import struct
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from foundry.binary.errors import ImageError

MAGIC = b"FDRYSIM1"
_HEADER = struct.Struct("<8sQII")
_ALIGNMENT = 16


class SimulatedImageError(ImageError):
    """The bytes are not an image of the simulator; the text says what is in the way."""


Places = tuple[tuple[int, int], ...]
"""Offsets and sizes."""
UNREAD = "unread"


def layouts(data: bytes) -> dict[str, Places]:
    """Give offset and size of each parameter of each kernel."""
    return {name: layout for name, (layout, _) in _kernels(data).items()}


def reads(data: bytes) -> dict[str, npt.NDArray[np.bool_]]:
    """Give for each kernel which bytes of its parameters it reads: all but those that its image says it does not."""
    found = {}
    for name, (layout, unread) in _kernels(data).items():
        mask = np.ones(max((offset + size for offset, size in layout), default=0), np.bool_)
        for offset, size in unread:
            mask[offset : offset + size] = False
        found[name] = mask
    return found


def without_others(data: bytes, kernels: Collection[str]) -> bytes:
    """Leave out all kernels but these. Not of an image with globals: a program would set them in its own load."""
    held = _kernels(data)
    if set(kernels) - held.keys() or not set(kernels) < held.keys():
        raise SimulatedImageError("it has not these kernels, or no others")
    _, total, text_size, code_at = _HEADER.unpack_from(data)
    lines = data[_HEADER.size : _HEADER.size + text_size].splitlines(keepends=True)
    if any(line.split()[:1] == [b"global"] for line in lines):
        raise SimulatedImageError("it has globals")
    text = b"".join(line for line in lines if line.split()[1].decode("utf-8", "replace") in set(kernels))
    begin = -(-(_HEADER.size + len(text)) // _ALIGNMENT) * _ALIGNMENT
    header = _HEADER.pack(MAGIC, begin + total - code_at, len(text), begin)
    return (header + text).ljust(begin, b"\0") + data[code_at:total]


def _kernels(data: bytes) -> dict[str, tuple[Places, Places]]:
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise SimulatedImageError("it is not an image of the simulator")
    _, total, text_size, code_at = _HEADER.unpack_from(data)
    if total > len(data) or code_at >= total or text_size > code_at - min(code_at, _HEADER.size):
        raise SimulatedImageError("its header does not fit its bytes")
    found = {}
    for line in data[_HEADER.size : _HEADER.size + text_size].decode("utf-8", "replace").splitlines():
        kind, *words = line.split() or [""]
        if kind == "kernel":
            name, layout, unread = _kernel(words)
            found[name] = layout, unread
        elif kind != "global":
            raise SimulatedImageError(f"a line begins with `{kind}`")
    return found


def _kernel(words: list[str]) -> tuple[str, Places, Places]:
    try:
        name, _, _, count, *places = words
        layout, rest = _places(places[: int(count)]), places[int(count) :]
        if int(count) != len(layout) or rest[:1] not in ([], [UNREAD]):
            raise ValueError
        unread = _places(rest[1:])
    except ValueError:
        raise SimulatedImageError("a line of a kernel is not one") from None
    return name, layout, unread


def _places(places: list[str]) -> Places:
    found = tuple((int(offset), int(size)) for offset, _, size in (place.partition(":") for place in places))
    if any(number < 0 for place in found for number in place):
        raise ValueError
    return found
