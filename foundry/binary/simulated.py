"""Reads the kernels of the simulator's own images, see `native/sim/image_format.h`."""

from __future__ import annotations

import struct

from foundry.binary.errors import ImageError

MAGIC = b"FDRYSIM1"
_HEADER = struct.Struct("<8sQII")


class SimulatedImageError(ImageError):
    """The bytes are not an image of the simulator; the text says what is in the way."""


def layouts(data: bytes) -> dict[str, tuple[tuple[int, int], ...]]:
    """Give offset and size of each parameter of each kernel."""
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise SimulatedImageError("it is not an image of the simulator")
    _, total, text_size, code_at = _HEADER.unpack_from(data)
    if total > len(data) or code_at >= total or text_size > code_at - min(code_at, _HEADER.size):
        raise SimulatedImageError("its header does not fit its bytes")
    found = {}
    for line in data[_HEADER.size : _HEADER.size + text_size].decode("utf-8", "replace").splitlines():
        kind, *words = line.split() or [""]
        if kind == "kernel":
            name, layout = _kernel(words)
            found[name] = layout
        elif kind != "global":
            raise SimulatedImageError(f"a line begins with `{kind}`")
    return found


def _kernel(words: list[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    try:
        name, _, _, count, *places = words
        layout = tuple((int(offset), int(size)) for offset, _, size in (place.partition(":") for place in places))
        if int(count) != len(layout):
            raise ValueError
    except ValueError:
        raise SimulatedImageError("a line of a kernel is not one") from None
    return name, layout
