"""The kernels of an image, whatever its kind."""

from __future__ import annotations

import struct
from typing import Protocol, TypeAlias

from foundry.binary import fatbin, ptx, simulated
from foundry.binary.cubin import ELF_MAGIC, Cubin
from foundry.binary.errors import ForeignImageError, ImageError

Layout: TypeAlias = tuple[tuple[int, int], ...]
"""Offset and size of each parameter."""


class Entries(Protocol):
    """The kernels of an image. What only a driver could tell is None; damage is an ImageError."""

    def __contains__(self, kernel: str) -> bool:
        """Whether the image defines that kernel."""

    def layout(self, kernel: str) -> Layout | None:
        """Give the parameters of a kernel."""

    def parameter_bytes(self, kernel: str) -> int | None:
        """Give the size of them all, where the image says it apart."""


class Names:
    """Kernels of which nothing is known but their names, or their names and layouts."""

    def __init__(self, layouts: dict[str, Layout | None]) -> None:
        self._layouts = layouts

    def __contains__(self, kernel: str) -> bool:
        return kernel in self._layouts

    def layout(self, kernel: str) -> Layout | None:
        """Give the parameters of a kernel."""
        return self._layouts.get(kernel)

    def parameter_bytes(self, kernel: str) -> None:
        """Tell nothing: there is no such record apart from the layout."""


def entries(data: bytes, architecture: int) -> Entries:
    """Find the kernels of an image that is loaded on a GPU of this architecture (90 for compute capability 9.0)."""
    if data.startswith(ELF_MAGIC):
        return Cubin(data)
    if data.startswith(simulated.MAGIC):
        return Names(dict(simulated.layouts(data)))
    if data.startswith(struct.pack("<I", fatbin.MAGIC)):
        return _of_fatbin(data, architecture)
    if ptx.looks_like_ptx(data):
        return Names(dict.fromkeys(ptx.entry_names(data)))
    raise ImageError("it is neither a cubin nor a fatbin, PTX or an image of the simulator")


def _of_fatbin(data: bytes, architecture: int) -> Entries:
    try:
        listed = list(fatbin.entries(data))
    except fatbin.FatbinError as error:
        raise ImageError(f"its fatbin cannot be read: {error}") from None
    for entry in listed:
        if entry.kind == fatbin.KIND_ELF and entry.payload.startswith(simulated.MAGIC):
            return entries(entry.payload, architecture)
    try:
        return Cubin(fatbin.unpack(data, architecture))
    except fatbin.FatbinError as error:
        texts = _texts(data, architecture)
        if texts:
            return Names(dict.fromkeys(name for text in texts for name in ptx.entry_names(text)))
        raise ForeignImageError(f"its fatbin has no one plain cubin for sm_{architecture}: {error}") from None


def _texts(data: bytes, architecture: int) -> list[bytes]:
    try:
        return fatbin.texts(data, architecture)
    except fatbin.FatbinError:
        return []
