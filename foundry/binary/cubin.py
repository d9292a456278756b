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
EXECUTABLE = 2
SYMBOLS = 2
FUNCTION = 2
ENTRY = 0x10
"""Bit of a symbol's `st_other`: the function is a kernel."""
INFORMATION_PREFIX = ".nv.info."
BANK_PREFIX = ".nv.constant0."
PROGRAM = 1
CODE_FLAG = np.uint64(4)
LARGEST_NAME = 1 << 16
FLAGS_WIDE_VERSION = 8
"""From this version of the ABI on, the architecture stands in the second byte of the flags; before, in the first."""

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
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
_RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4")])
_RELOCATION_WITH_ADDEND = np.dtype([*_RELOCATION.descr, ("addend", "<u8")])
RELOCATIONS = {4: (".rela", _RELOCATION_WITH_ADDEND), 9: (".rel", _RELOCATION)}
"""By section type: what its name begins with, and its entries."""

_FORMAT_SIZED = 4
"""Attributes of this format are followed by as many bytes as their 16-bit value says."""
_PARAMETER = 0x17
_PARAMETER_WIDE = 0x45
"""The same for kernels whose parameters pass 4 KiB, with sizes of 16 bits instead of 14."""
_PARAMETER_BYTES = 0x19
_PARAMETER_BANK = 0x0A
_PARAMETER_BANK_STRUCT = struct.Struct("<IHH")
_PARAMETER_STRUCT = struct.Struct("<IHHI")
_PARAMETER_WIDE_STRUCT = struct.Struct("<IHHHH")


class CubinError(ImageError):
    """The bytes are not a cubin that can be read; the text says what is in the way."""


class Cubin:
    """A cubin, whose header and section headers were checked."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        if len(data) < HEADER.size or not data.startswith(ELF_MAGIC):
            raise CubinError("it is not an ELF file")
        identity, kind, machine, *rest = HEADER.unpack_from(data)
        self._flags, self._flags_version, self.executable = rest[4], identity[8], kind == EXECUTABLE
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

    @property
    def architecture(self) -> int:
        """The GPU that its code is for, 90 for compute capability 9.0."""
        return int(self._flags >> 8 & 0xFF if self._flags_version >= FLAGS_WIDE_VERSION else self._flags & 0xFF)

    @cached_property
    def _symbols(self) -> tuple[tuple[npt.NDArray[np.void], bytes], ...]:
        """The symbol tables, each with its names."""
        found = []
        for at in np.flatnonzero(self._sections["type"] == SYMBOLS).tolist():
            header = self._sections[at]
            table = self._table(_SYMBOL, int(header["offset"]), int(header["size"]) // _SYMBOL.itemsize)
            found.append((table, self._contents(int(header["link"]))))
        return tuple(found)

    @cached_property
    def _entries(self) -> dict[str, tuple[int, int]]:
        """The kernels that it defines, each with its section and where it begins there."""
        found: dict[str, tuple[int, int]] = {}
        for symbols, names in self._symbols:
            for name, section, value in symbols[_is_entry(symbols)][["name", "section", "value"]].tolist():
                found[_text(names, name)] = section, value
        return found

    @cached_property
    def kernels(self) -> dict[str, int]:
        """The kernels that it defines, with the index of the section that holds each one's code."""
        return {name: section for name, (section, _) in self._entries.items()}

    @cached_property
    def undefined(self) -> frozenset[str]:
        """What it names and does not define."""
        found = set()
        for symbols, names in self._symbols:
            for symbol in symbols[(symbols["section"] == 0) & (symbols["name"] != 0)]:
                found.add(_text(names, int(symbol["name"])))
        return frozenset(found)

    def code(self, kernel: str) -> bytes | None:
        """Give the code of a kernel, None if the cubin does not define it."""
        at = self.kernels.get(kernel)
        return None if at is None else self._contents(at)

    def begin(self, kernel: str) -> int:
        """Tell where a kernel begins in its section of code."""
        return self._entries[kernel][1]

    def functions(self) -> Iterator[bytes]:
        """Give the code of each section that is not a kernel's."""
        entries = set(self.kernels.values())
        code = (self._sections["flags"] & CODE_FLAG) != 0
        for at in np.flatnonzero(code & (self._sections["type"] == PROGRAM)).tolist():
            if at not in entries:
                yield self._contents(at)

    def relocations(self) -> Iterator[tuple[str, tuple[str, ...], bool]]:
        """Give the name of each section that the driver changes on a load.

        With it come the kernels whose address it puts there, and whether it puts that of another function there.
        """
        for at in np.flatnonzero(np.isin(self._sections["type"], list(RELOCATIONS)) & (self._sections["size"] > 0)):
            header = self._sections[at]
            prefix, dtype = RELOCATIONS[int(header["type"])]
            name = _text(self._names, int(header["name"]))
            table = self._table(dtype, int(header["offset"]), int(header["size"]) // dtype.itemsize)
            symbols, names = self._symbols[0]
            picked = np.unique(table["symbol"])
            if len(picked) and picked[-1] >= len(symbols):
                raise CubinError("a relocation names no symbol")
            some = symbols[picked]
            yield (
                name.removeprefix(prefix),
                tuple(_text(names, int(symbol["name"])) for symbol in some[_is_entry(some)]),
                bool((((some["info"] & 0xF) == FUNCTION) & (some["section"] != 0) & ~_is_entry(some)).any()),
            )

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

    def parameter_bank(self, kernel: str) -> tuple[int, int] | None:
        """Tell where in constant bank 0 a kernel's parameters begin and how many bytes they take, None if unknown."""
        at = self._information.get(kernel)
        if at is None:
            return None
        for attribute, value in _attributes(self._contents(at)):
            if attribute == _PARAMETER_BANK and len(value) == _PARAMETER_BANK_STRUCT.size:
                _, offset, size = _PARAMETER_BANK_STRUCT.unpack(value)
                return offset, size
        return None

    def bank_bytes(self, kernel: str) -> int | None:
        """Give the size of a kernel's constant bank 0, None if it has none."""
        at = self._banks.get(kernel)
        return None if at is None else int(self._sections["size"][at])

    @cached_property
    def _banks(self) -> dict[str, int]:
        return self._named(BANK_PREFIX)

    @cached_property
    def _information(self) -> dict[str, int]:
        return self._named(INFORMATION_PREFIX)

    def _named(self, beginning: str) -> dict[str, int]:
        prefix = beginning.encode()
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


def _is_entry(symbols: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    function = (symbols["info"] & 0xF) == FUNCTION
    found: npt.NDArray[np.bool_] = function & ((symbols["other"] & ENTRY) != 0) & (symbols["section"] != 0)
    return found


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
