"""Reads the kernels of a cubin: their names from the symbol table, their parameters from the `.nv.info` sections.

A cubin may have ten thousand sections, so headers are looked at as tables, and only what is asked for is unpacked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foundry.binary.errors import ImageError

ELF_MAGIC = b"\x7fELF"
CUDA_MACHINE = 190
SYMBOLS = 2
FUNCTION = 2
ENTRY = 0x10
"""Bit of a symbol's `st_other`: the function is a kernel."""
INFORMATION_PREFIX = ".nv.info."
LARGEST_NAME = 1 << 16

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = np.dtype(
    [
        ("name", "<u4"),
        ("type", "<u4"),
        ("flags", "<u8"),
        ("address", "<u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("link", "<u4"),
        ("info", "<u4"),
        ("alignment", "<u8"),
        ("entry_size", "<u8"),
    ]
)
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)

_FORMAT_SIZED = 4
"""Attributes of this format are followed by as many bytes as their 16-bit value says."""
_PARAMETER = 0x17
_PARAMETER_WIDE = 0x45
"""The same for kernels whose parameters pass 4 KiB, with sizes of 16 bits instead of 14."""
_PARAMETER_BYTES = 0x19
_PARAMETER_STRUCT = struct.Struct("<IHHI")
_PARAMETER_WIDE_STRUCT = struct.Struct("<IHHHH")


class CubinError(ImageError):
    """The bytes are not a cubin that can be read; the text says what is in the way."""


class Cubin:
    """A cubin, whose header and section headers were checked."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        if len(data) < _HEADER.size or not data.startswith(ELF_MAGIC):
            raise CubinError("it is not an ELF file")
        identity, _, machine, *rest = _HEADER.unpack_from(data)
        if identity[4] != 2 or identity[5] != 1 or machine != CUDA_MACHINE:
            raise CubinError("it is not an ELF file for a GPU")
        offset, entry_size, count, names = rest[3], rest[8], rest[9], rest[10]
        if entry_size != _SECTION.itemsize:
            raise CubinError(f"section headers of {entry_size} bytes")
        if not count and offset:
            count, names = self._many(offset, names)
        self._sections = self._table(_SECTION, offset, count)
        self._names = self._contents(names)

    def __contains__(self, kernel: str) -> bool:
        return kernel in self.kernels

    @cached_property
    def kernels(self) -> dict[str, int]:
        """The kernels that it defines, with the index of the section that holds each one's code."""
        found: dict[str, int] = {}
        for at in np.flatnonzero(self._sections["type"] == SYMBOLS).tolist():
            header = self._sections[at]
            symbols = self._table(_SYMBOL, int(header["offset"]), int(header["size"]) // _SYMBOL.itemsize)
            names = self._contents(int(header["link"]))
            function = (symbols["info"] & 0xF) == FUNCTION
            wanted = function & ((symbols["other"] & ENTRY) != 0) & (symbols["section"] != 0)
            for symbol in symbols[wanted]:
                found[_text(names, int(symbol["name"]))] = int(symbol["section"])
        return found

    def layout(self, kernel: str) -> tuple[tuple[int, int], ...] | None:
        """Give offset and size of each parameter in order, None if the cubin does not tell."""
        at = self._information.get(kernel)
        if at is None:
            return None
        places: dict[int, tuple[int, int]] = {}
        for attribute, value in _attributes(self._contents(at)):
            if attribute == _PARAMETER and len(value) == _PARAMETER_STRUCT.size:
                _, ordinal, offset, bits = _PARAMETER_STRUCT.unpack(value)
                places[ordinal] = (offset, bits >> 18)
            elif attribute == _PARAMETER_WIDE and len(value) == _PARAMETER_WIDE_STRUCT.size:
                _, ordinal, offset, size, _ = _PARAMETER_WIDE_STRUCT.unpack(value)
                places[ordinal] = (offset, size)
        if sorted(places) != list(range(len(places))):
            raise CubinError(f"the parameters of `{kernel}` are not numbered from 0 on")
        return tuple(places[ordinal] for ordinal in range(len(places)))

    def parameter_bytes(self, kernel: str) -> int | None:
        """Give the size of all parameters of a kernel, None if the cubin does not tell."""
        at = self._information.get(kernel)
        if at is None:
            return None
        for attribute, value in _attributes(self._contents(at)):
            if attribute == _PARAMETER_BYTES and len(value) == 2:
                return int.from_bytes(value, "little")
        return None

    @cached_property
    def _information(self) -> dict[str, int]:
        prefix = INFORMATION_PREFIX.encode()
        found: dict[str, int] = {}
        for at, offset in enumerate(self._sections["name"].tolist()):
            if self._names.startswith(prefix, offset):
                found[_text(self._names, offset + len(prefix))] = at
        return found

    def _many(self, offset: int, names: int) -> tuple[int, int]:
        """Give the real number of sections, and the index of their names, where they are too large for the header."""
        first = self._table(_SECTION, offset, 1)[0]
        return int(first["size"]), int(first["link"]) if names == 0xFFFF else names

    def _table(self, dtype: np.dtype[np.void], offset: int, count: int) -> npt.NDArray[np.void]:
        if offset > len(self._data) or count > (len(self._data) - offset) // dtype.itemsize:
            raise CubinError("a table passes its end")
        return np.frombuffer(self._data, dtype, count, offset)

    def _contents(self, index: int) -> bytes:
        if not 0 <= index < len(self._sections):
            raise CubinError(f"there is no section {index}")
        offset, size = int(self._sections["offset"][index]), int(self._sections["size"][index])
        if offset > len(self._data) or size > len(self._data) - offset:
            raise CubinError(f"section {index} passes its end")
        return self._data[offset : offset + size]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _FORMAT_SIZED:
            yield attribute, data[at - 2 : at]
            continue
        if size > len(data) - at:
            raise CubinError("an attribute passes the end of its section")
        yield attribute, data[at : at + size]
        at += size
    if at != len(data):
        raise CubinError("attributes are cut")


def _text(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset, offset + LARGEST_NAME) if offset < len(names) else -1
    if end < 0:
        raise CubinError("a name passes its end")
    return names[offset:end].decode("utf-8", "replace")
