"""Writes a cubin anew without some of its sections."""

from __future__ import annotations

import struct
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foundry.binary.attributes import of_functions
from foundry.binary.cubin import HEADER, RELOCATIONS
from foundry.binary.frames import without_frames
from foundry.binary.parts import SYMBOL_BITS, Mask, Parts, UnsureError, text
from foundry.binary.sections import CALLS, EMPTY, FRAMES, INFORMATION, NULL, SYMBOLS, TEXT, is_frames
from foundry.binary.segments import alignment_of, segments

_TABLE_ALIGNMENT = 8


def rebuilt(parts: Parts, dropped: Mask) -> bytes:
    """Write the cubin without those sections. All else keeps its order, its alignment and its segment."""
    numbers = _Numbers(parts, dropped)
    headers = parts.sections[~dropped].copy()
    contents = [numbers.contents(at) for at in np.flatnonzero(~dropped).tolist()]
    names = _Strings()
    for header, at in zip(headers, np.flatnonzero(~dropped).tolist(), strict=True):
        header["name"] = names.add(parts.section_names[at])
        header["link"], header["info"] = numbers.link(at), numbers.info(at)
    contents[int(numbers.sections[parts.names_at])] = bytes(names.data)
    return _file(parts, dropped, headers, contents)


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(1)
        self._known = {"": 0}

    def add(self, name: str) -> int:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = len(self.data)
            self.data += name.encode() + b"\0"
        return known


class _Numbers:
    """The new numbers of sections and symbols, and what has to be written anew for them."""

    def __init__(self, parts: Parts, dropped: Mask) -> None:
        self._parts, self._dropped = parts, dropped
        self.sections = np.cumsum(~dropped) - 1
        symbols = parts.symbols
        self._kept = ~dropped[symbols["section"]]
        self._symbols = np.cumsum(self._kept) - 1
        names = _Strings()
        table = symbols[self._kept].copy()
        table["section"] = self.sections[table["section"]]
        table["name"] = [names.add(text(parts.symbol_names, offset)) for offset in table["name"].tolist()]
        at = parts.section_names.index(".symtab")
        self._table, self._names = bytes(table.tobytes()), bytes(names.data)
        self._names_at = int(parts.sections["link"][at])
        if self._names_at in (parts.names_at, at) or parts.section_names[self._names_at] != ".strtab":
            raise UnsureError("its names lie elsewhere")
        if not 0 < parts.names_at < len(parts.sections) or parts.section_names[parts.names_at] != ".shstrtab":
            raise UnsureError("its names lie elsewhere")

    def symbol(self, old: int) -> int:
        if old >= len(self._kept) or not self._kept[old]:
            raise UnsureError("something that stays refers to what goes")
        return int(self._symbols[old])

    def section(self, old: int) -> int:
        if old >= len(self._dropped) or self._dropped[old]:
            raise UnsureError("something that stays refers to what goes")
        return int(self.sections[old])

    def link(self, at: int) -> int:
        return self.section(int(self._parts.sections["link"][at]))

    def info(self, at: int) -> int:
        header, name = self._parts.sections[at], self._parts.section_names[at]
        info, kind = int(header["info"]), int(header["type"])
        if kind == SYMBOLS:
            return int(self._kept[:info].sum())
        if name.startswith(TEXT):
            return info & ~SYMBOL_BITS | (self.symbol(info & SYMBOL_BITS) if info & SYMBOL_BITS else 0)
        if self._parts.info_is_section(at):
            return self.section(info)
        if info:
            raise UnsureError(f"section `{name}` refers to something unknown")
        return 0

    def contents(self, at: int) -> bytes:
        name, kind = self._parts.section_names[at], self._parts.kinds[at]
        if kind == SYMBOLS:
            return self._table
        if at == self._names_at:
            return self._names
        if is_frames(name):
            return self._frames(at)
        if kind in RELOCATIONS:
            return self._renumbered(self._parts.relocated(at))
        if name == INFORMATION or name.startswith(INFORMATION + "."):
            return self._information(at)
        if name == CALLS:
            return self._calls(at)
        return self._parts.contents(at)

    def _renumbered(self, entries: npt.NDArray[np.void]) -> bytes:
        table = entries.copy()
        picked = table["symbol"]
        if (picked >= len(self._kept)).any() or not self._kept[picked].all():
            raise UnsureError("something that stays refers to what goes")
        table["symbol"] = self._symbols[picked]
        return bytes(table.tobytes())

    def _frames(self, at: int) -> bytes:
        """Write call frames or their relocations anew; those of functions that go, go with them."""
        left, kept = self._left_frames
        return self._renumbered(kept) if self._parts.kinds[at] in RELOCATIONS else left

    @cached_property
    def _left_frames(self) -> tuple[bytes, npt.NDArray[np.void]]:
        names = self._parts.section_names
        tables = [at for at, name in enumerate(names) if is_frames(name) and name != FRAMES]
        if len(tables) != 1 or names.count(FRAMES) != 1:
            raise UnsureError("its call frames are written in another way")
        relocations = self._parts.relocated(tables[0])
        if (relocations["symbol"] >= len(self._kept)).any():
            raise UnsureError("a call frame is of no symbol")
        return without_frames(self._parts.contents(names.index(FRAMES)), relocations, ~self._kept)

    def _information(self, at: int) -> bytes:
        """Write attributes anew; those of functions that go, go with them."""
        if self._parts.section_names[at] == INFORMATION:
            table = of_functions(self._parts.contents(at))
            if (table["symbol"] >= len(self._kept)).any():
                raise UnsureError("something refers to no symbol")
            return self._renumbered(table[self._kept[table["symbol"]]])
        found = []
        for record, symbols in self._parts.attributes(at):
            words = struct.pack(f"<{len(symbols)}I", *map(self.symbol, symbols))
            found.append(record[:4] + words + record[4 + len(words) :])
        return b"".join(found)

    def _calls(self, at: int) -> bytes:
        """Write the calls anew; those of functions that go, go with them."""
        found: list[tuple[int, int]] = []
        for caller, callee in self._parts.pairs(at):
            if not caller:
                found.append((caller, callee))
            elif caller >= len(self._kept) or self._kept[caller]:
                found.append((self.symbol(caller), self.symbol(callee)))
        return bytes(np.array(found, "<u4").tobytes())


def _file(parts: Parts, dropped: Mask, headers: npt.NDArray[np.void], contents: list[bytes]) -> bytes:
    """Lay everything out as it was: header, sections in their order, section headers, segments."""
    old = parts.sections[~dropped]
    filled = (old["type"] != EMPTY) & (old["type"] != NULL)
    out = bytearray(HEADER.size)
    passed = HEADER.size
    for at in np.lexsort((np.arange(len(old)), old["offset"])).tolist():
        header = headers[at]
        if not filled[at]:
            if int(old["offset"][at]) % alignment_of(header) == 0:
                out += bytes(-len(out) % alignment_of(header))
            header["offset"] = len(out) if int(old["type"][at]) == EMPTY else 0
            continue
        if int(old["offset"][at]) < passed and int(old["size"][at]):
            raise UnsureError("its sections overlap")
        passed = max(passed, int(old["offset"][at]) + int(old["size"][at]))
        out += bytes(-len(out) % alignment_of(header))
        header["offset"], header["size"] = len(out), len(contents[at])
        out += contents[at]
    out += bytes(-len(out) % _TABLE_ALIGNMENT)
    headers_at = len(out)
    out += headers.tobytes()
    segments_at = len(out) if parts.segment_count else 0
    around = segments(parts, dropped, headers, segments_at)
    out += b"".join(around)
    fields = list(HEADER.unpack_from(parts.data))
    fields[5], fields[6], fields[10], fields[12] = segments_at, headers_at, len(around), len(headers)
    fields[13] = int((np.cumsum(~dropped) - 1)[parts.names_at])
    HEADER.pack_into(out, 0, *fields)
    return bytes(out)
