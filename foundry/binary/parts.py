"""What the parts of a cubin are, whose they are, and what they refer to.

A cubin that holds anything whose meaning is not known here is refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foundry.binary.attributes import OPERANDS, SYMBOL_FIRST, records
from foundry.binary.cubin import ENTRY, FUNCTION, HEADER, RELOCATIONS, Cubin
from foundry.binary.errors import ImageError
from foundry.binary.sections import (
    ALLOCATED,
    CALLS,
    DEBUG,
    EMPTY,
    INFORMATION,
    NULL,
    OF_ALL,
    OF_ONE,
    SYMBOLS,
    TEXT,
    is_frames,
)

INFO_IS_SECTION = 0x40
VERSIONS = (7, 8)
"""Of the ABI."""
ARCHITECTURES = (90,)
LARGEST_COUNT = 0xFF00
"""From here on a section's index is none, or stands elsewhere."""
SYMBOL_BITS = 0xFFFFFF
"""Bits of a code section's `sh_info` that hold the symbol of its function; older cubins count registers above."""
_SHORTEST_PREFIX = 4
"""A point at or behind this place ends what stands in a section's name before that of its function."""
_CALLS_BEGIN, _REST_BEGINS = 0xFFFFFFFF, (0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFC)

USER_CONSTANTS = (".nv.constant3", ".nv.constant1")
_STATELESS, _LOCAL = (FUNCTION, 3, 4), 0
"""Symbols of functions, sections and files, and symbols that no other image and no program can name."""
_RESERVED = ".nv.shared.reserved.0"
_LITERAL = re.compile(r"\$str(\$\d+)?|__unnamed_\d+|__cudart_\w+")
"""Strings, names of functions for assertions, tables of the mathematical functions."""
_LIBRARY = re.compile(r"_ZN\d+_INTERNAL_\w*(4cuda3std|6thrust|3cub)")
"""Objects without a state, which headers of the C++ library define in each file."""

Mask = npt.NDArray[np.bool_]


class UnsureError(ImageError):
    """The cubin had better be loaded whole; the text says why."""


def text(names: bytes, offset: int) -> str:
    """Give the name that begins there."""
    end = names.find(b"\0", offset)
    try:
        if end >= 0:
            return names[offset:end].decode()
    except UnicodeDecodeError:
        pass
    raise UnsureError("a name is none")


def texts(names: bytes, offsets: list[int]) -> list[str]:
    """Give the names that begin at these places."""
    if not names.isascii() or not names.endswith(b"\0"):
        return [text(names, offset) for offset in offsets]
    whole = names.decode("ascii").split("\0")
    lengths = np.fromiter(map(len, whole), np.int64, len(whole)) + 1
    known = dict(zip((np.cumsum(lengths) - lengths).tolist(), whole[:-1], strict=False))
    return [name if (name := known.get(offset)) is not None else text(names, offset) for offset in offsets]


class Parts(Cubin):
    """A cubin of which each part is known, with whose it is."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.data, self.sections = data, self._sections
        fields = HEADER.unpack_from(data)
        self.segments_at, self.segment_count, self.names_at = fields[5], fields[10], fields[13]
        identity, entry, size = fields[0], fields[4], fields[8]
        self.head = (*fields[:5], *fields[7:10], fields[11])
        """What does not say where or how many its parts are."""
        if (
            not self.executable
            or identity[8] not in VERSIONS
            or entry
            or size != HEADER.size
            or fields[9] not in (0, 56)
        ):
            raise UnsureError("its header is of another kind")
        if self.architecture not in ARCHITECTURES:
            raise UnsureError(f"its code is for sm_{self.architecture}")
        if not 0 < len(self.sections) < LARGEST_COUNT or self.sections["address"].any():
            raise UnsureError("its sections are numbered or placed in another way")
        if len(self._symbols) != 1:
            raise UnsureError("it has not one symbol table")
        self.symbols, self.symbol_names = self._symbols[0]
        self._check_places()
        if (self.symbols["section"] >= len(self.sections)).any():
            raise UnsureError("a symbol is in no section")
        self.section_names = texts(self._names, self.sections["name"].tolist())
        if len(set(self.section_names)) != len(self.section_names):
            raise UnsureError("two sections have one name")
        self.kinds: list[int] = self.sections["type"].tolist()
        self.infos: list[int] = self.sections["info"].tolist()
        self.debug = np.array([name.startswith(DEBUG) and not is_frames(name) for name in self.section_names])
        if (self.sections["flags"][self.debug] & np.uint64(ALLOCATED)).any():
            raise UnsureError("what debuggers read is loaded")
        self._texts = {
            name.removeprefix(TEXT): at for at, name in enumerate(self.section_names) if name.startswith(TEXT)
        }
        entries = int((self.symbols["other"] & ENTRY != 0).sum())
        if any(self._texts.get(name) != at for name, at in self.kernels.items()) or len(self.kernels) != entries:
            raise UnsureError("a kernel is not alone in a section of its name")
        self.owners = self._owners()

    def _check_places(self) -> None:
        there = ~np.isin(self.sections["type"], (NULL, EMPTY))
        offset, size = self.sections["offset"][there], self.sections["size"][there]
        length = np.uint64(len(self.data))
        if (offset > length).any() or (size > length - offset).any():
            raise UnsureError("a section passes its end")
        if (offset % np.maximum(self.sections["alignment"][there], np.uint64(1))).any():
            raise UnsureError("a section does not lie where its alignment says")
        if (self.sections["size"][self.sections["type"] == SYMBOLS] % np.uint64(self.symbols.itemsize)).any():
            raise UnsureError("its symbols are cut")

    def contents(self, at: int) -> bytes:
        """Give the bytes of a section."""
        return b"" if self.kinds[at] in (NULL, EMPTY) else self._contents(at)

    def relocated(self, at: int) -> npt.NDArray[np.void]:
        """Give the entries of a section of relocations."""
        dtype = RELOCATIONS[self.kinds[at]][1]
        contents = self.contents(at)
        if len(contents) % dtype.itemsize:
            raise UnsureError("relocations are cut")
        return np.frombuffer(contents, dtype)

    def pairs(self, at: int) -> list[tuple[int, int]]:
        """Give the pairs of a section of calls."""
        contents = self.contents(at)
        if len(contents) % 8:
            raise UnsureError("the calls are cut")
        return list(struct.iter_unpack("<II", contents))

    @cached_property
    def _calls(self) -> list[tuple[int, int]]:
        """Who calls whom, as symbols."""
        found = []
        for at, name in enumerate(self.section_names):
            if name != CALLS:
                continue
            group = 0
            for caller, callee in self.pairs(at):
                if not caller and callee in (_CALLS_BEGIN, *_REST_BEGINS):
                    group = callee
                elif group != _CALLS_BEGIN or not caller:
                    raise UnsureError("it has calls through pointers, or kernels that launch kernels")
                else:
                    found.append((caller, callee))
        return found

    def unneeded(self, kernels: Collection[str]) -> Mask:
        """Tell which sections are of no use to these kernels."""
        missing = sorted(set(kernels) - self.kernels.keys())
        if missing or not kernels:
            raise UnsureError(f"it has no kernel `{missing[0]}`" if missing else "no kernel is asked for")
        kept: set[str | None] = set()
        reached: list[str | None] = [None, *kernels]
        while reached:
            owner = reached.pop()
            if owner not in kept:
                kept.add(owner)
                reached.extend(self._needs(owner))
        if self.kernels.keys() <= kept:
            raise UnsureError("all its kernels are needed")
        unneeded: Mask = np.array([owner not in kept for owner in self.owners]) | self.debug
        return unneeded

    def _needs(self, owner: str | None) -> set[str | None]:
        """Tell to whose parts a kernel refers, or whatever stays."""
        symbols = {callee for caller, callee in self._calls if self.owner_of(caller) == owner}
        for at in self._sections_of[owner]:
            name = self.section_names[at]
            if self.debug[at] or is_frames(name):
                continue
            if self.kinds[at] in RELOCATIONS:
                symbols.update(np.unique(self.relocated(at)["symbol"]).tolist())
            elif name.startswith(INFORMATION + "."):
                symbols.update(symbol for _, found in self.attributes(at) for symbol in found)
        return set(map(self.owner_of, symbols))

    @cached_property
    def _sections_of(self) -> dict[str | None, list[int]]:
        found: dict[str | None, list[int]] = {None: []}
        for at, owner in enumerate(self.owners):
            found.setdefault(owner, []).append(at)
        return found

    def attributes(self, at: int) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """Give the attributes of a kernel as they stand there, each with the symbols that it begins with."""
        for attribute, record in records(self.contents(at)):
            symbols = OPERANDS.get((record[0], attribute))
            if symbols is None:
                raise UnsureError(f"attribute {attribute:#x} of its code is not known")
            words = np.frombuffer(record[4:], "<u4").tolist() if symbols else []
            yield record, tuple(words[:1] if symbols == SYMBOL_FIRST else words)

    def owner_of(self, symbol: int) -> str | None:
        """Tell whose a symbol is."""
        if symbol >= len(self.symbols):
            raise UnsureError("something refers to no symbol")
        section = int(self.symbols["section"][symbol])
        if self.debug[section]:
            raise UnsureError("something refers to what debuggers read")
        return self.owners[section]

    @property
    def variables(self) -> list[str]:
        """What a program could set or kernels could share: all objects but those that compilers make for themselves."""
        found = [name for name in self.section_names if name.startswith(USER_CONSTANTS)]
        for name, info, section, size in self.symbols[["name", "info", "section", "size"]].tolist():
            if section and info & 0xF not in _STATELESS and self.section_names[section] != _RESERVED:
                called = text(self.symbol_names, name)
                if info >> 4 != _LOCAL or not (_LITERAL.fullmatch(called) or (size == 1 and _LIBRARY.match(called))):
                    found.append(called)
        return found

    def _owners(self) -> list[str | None]:
        """Tell whose each section is, by its name and what it refers to: a kernel's, or None for one that stays."""
        names, kernels, codes = self.section_names, self.kernels, self._texts
        symbols = self.symbols["section"].tolist()
        found: list[str | None] = []
        for at, (name, kind, info, debug) in enumerate(
            zip(names, self.kinds, self.infos, self.debug.tolist(), strict=True)
        ):
            target = name
            if kind in RELOCATIONS:
                target = names[info] if info < len(names) else ""
                if name != RELOCATIONS[kind][0] + target:
                    raise UnsureError(f"section `{name}` is of another one than it is called after")
            if debug or (name in OF_ALL and kind in OF_ALL[name]):
                found.append(None)
                continue
            function = target[target.find(".", _SHORTEST_PREFIX) + 1 :]
            prefix = name[: len(name) - len(function)]
            code = codes.get(function)
            if prefix not in OF_ONE or kind not in OF_ONE[prefix] or code is None:
                raise UnsureError(f"section `{name}` of type {kind:#x} is not known")
            if prefix == TEXT:
                symbol = info & SYMBOL_BITS
                right = not symbol or (symbol < len(symbols) and symbols[symbol] == at)
            else:
                right = kind in RELOCATIONS or info == code
            if not right:
                raise UnsureError(f"section `{name}` is of another function")
            found.append(function if function in kernels else None)
        return found

    def info_is_section(self, at: int) -> bool:
        """Whether `sh_info` of a section is the index of another."""
        name = self.section_names[at]
        if name.startswith(TEXT) or self.kinds[at] == SYMBOLS:
            return False
        flagged = bool(int(self.sections["flags"][at]) & INFO_IS_SECTION)
        return flagged or self.kinds[at] in RELOCATIONS or name not in OF_ALL
