"""Compares what stays of a cubin with what it was, part by part, whatever their numbers are now."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from foundry.binary.attributes import of_functions
from foundry.binary.cubin import RELOCATIONS
from foundry.binary.parts import SYMBOL_BITS, Parts, UnsureError, text
from foundry.binary.sections import CALLS, EMPTY, INFORMATION, SYMBOLS, TEXT, is_frames
from foundry.binary.segments import segments

_NUMBERED = (".shstrtab", ".strtab", ".symtab")
"""What only names and numbers the rest."""

_OF_A_SYMBOL = ["info", "other", "value", "size"]
_Plain: TypeAlias = tuple[object, ...]


def compare(whole: Parts, less: Parts) -> None:
    """Raise an UnsureError if anything in `less` is not what it is in `whole`, or a kernel lacks a part."""
    places = {name: at for at, name in enumerate(whole.section_names)}
    stays = set(less.section_names)
    for name in whole.section_names:
        if name not in stays and whole.owners[places[name]] in less.kernels:
            raise UnsureError(f"section `{name}` was lost")
    gone = np.array([name not in stays for name in whole.section_names])
    around = segments(whole, gone, less.sections, less.segments_at)
    there = less.data[less.segments_at :] if around else b""
    if whole.head != less.head or len(around) != less.segment_count or there != b"".join(around):
        raise UnsureError("its header or its segments have changed")
    before, after = _Reader(whole, stays), _Reader(less, stays)
    if before.symbols() != after.symbols():
        raise UnsureError("its symbols have changed")
    for at, name in enumerate(less.section_names):
        if name not in places or before.section(places[name]) != after.section(at):
            raise UnsureError(f"section `{name}` has changed")


class _Reader:
    """Reads sections with names in the place of numbers; what is told of parts that do not stay is passed over."""

    def __init__(self, parts: Parts, stays: set[str]) -> None:
        self._parts = parts
        self._stays = np.array([name in stays for name in parts.section_names])[parts.symbols["section"]]

    def symbols(self) -> tuple[object, ...]:
        """All symbols of what stays, in their order, and how many of them are local."""
        local = self._parts.infos[self._parts.section_names.index(".symtab")]
        kept = self._parts.symbols[self._stays]
        names = [text(self._parts.symbol_names, offset) for offset in kept["name"].tolist()]
        sections = [self._parts.section_names[at] for at in kept["section"].tolist()]
        return int(self._stays[:local].sum()), names, sections, kept[_OF_A_SYMBOL].tolist()

    def section(self, at: int) -> _Plain:
        """One section: its header and its contents."""
        header, name = self._parts.sections[at], self._parts.section_names[at]
        kind, info = self._parts.kinds[at], int(header["info"])
        target: object = info
        if name.startswith(TEXT):
            target = info & ~SYMBOL_BITS, self._symbol(info & SYMBOL_BITS)
        elif kind == SYMBOLS:
            target = None
        elif self._parts.info_is_section(at):
            target = self._section(info)
        size = int(header["size"]) if kind == EMPTY else None
        link = self._section(int(header["link"]))
        fixed = (kind, *(int(header[field]) for field in ("flags", "alignment", "entry_size")))
        return (*fixed, size, link, target, self._contents(at))

    def _contents(self, at: int) -> object:
        name, kind = self._parts.section_names[at], self._parts.kinds[at]
        if name in _NUMBERED or is_frames(name):
            return None
        if kind in RELOCATIONS:
            return [(offset, how, self._symbol(symbol), *rest) for offset, how, symbol, *rest in self._entries(at)]
        if name == CALLS:
            return [
                (self._symbol(caller), self._symbol(callee)) if caller else callee
                for caller, callee in self._parts.pairs(at)
                if not caller or self._kept(caller)
            ]
        if name == INFORMATION:
            table = of_functions(self._parts.contents(at))
            rows = table[[self._kept(symbol) for symbol in table["symbol"].tolist()]]
            return [(kind, value, self._symbol(symbol)) for _, kind, _, symbol, value in rows.tolist()]
        if name.startswith(INFORMATION + "."):
            return [
                (record[:4], list(map(self._symbol, symbols)), record[4 + 4 * len(symbols) :])
                for record, symbols in self._parts.attributes(at)
            ]
        return self._parts.contents(at)

    def _entries(self, at: int) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = self._parts.relocated(at).tolist()
        return found

    def _section(self, number: int) -> str:
        if number >= len(self._parts.section_names):
            raise UnsureError("something refers to no section")
        return self._parts.section_names[number]

    def _kept(self, number: int) -> bool:
        return number >= len(self._stays) or bool(self._stays[number])

    def _symbol(self, number: int) -> _Plain:
        if number >= len(self._parts.symbols):
            raise UnsureError("something refers to no symbol")
        name, info, other, section, value, size = self._parts.symbols[number].item()
        return text(self._parts.symbol_names, name), info, other, self._parts.section_names[section], value, size
