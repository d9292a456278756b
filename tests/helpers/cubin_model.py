"""A cubin as plain data: numbers of sections and symbols are names. Trimming has no part in this reader."""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any

OWN = (".text.", ".nv.info.", ".nv.constant0.", ".nv.constant2.", ".nv.shared.", ".rel.text.", ".rela.text.")
OWN += (".rel.nv.constant2.", ".rela.nv.constant2.")


class CubinModel:
    """`sections` by name, `symbols` in their order, those `behind` the number in their header, `segments`."""

    def __init__(self, data: bytes) -> None:
        fields = struct.unpack_from("<16sHHIQQQIHHHHHH", data)
        at, count, names = fields[6], fields[12], fields[13]
        self.head = (*fields[:5], *fields[7:10], fields[11])
        self.headers = [struct.unpack_from("<IIQQQQIIQQ", data, at + 64 * number) for number in range(count)]
        self.size, self._data = len(data), data
        strings = self._bytes(names)
        self.names = [_name(strings, header[0]) for header in self.headers]
        table = self.names.index(".symtab")
        strings = self._bytes(self.headers[table][6])
        self.raw = list(struct.iter_unpack("<IBBHQQ", self._bytes(table)))
        self.symbols = [(_name(strings, name), *rest[:2], self.names[rest[2]], *rest[3:]) for name, *rest in self.raw]
        self.kernels = {symbol[0] for symbol in self.symbols if symbol[2] & 0x10 and symbol[3]}
        self.behind = self.symbols[self.headers[table][7] :]
        assert len(set(self.names)) == count
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, fields[5] + 56 * at) for at in range(fields[10])]

    def owner(self, section: str) -> str | None:
        """Whose a section is, by its name."""
        found = [section[len(prefix) :] for prefix in OWN if section.startswith(prefix)]
        return next((name for name in found if name in self.kernels), None)

    def _bytes(self, number: int) -> bytes:
        kind, offset, size = self.headers[number][1], *self.headers[number][4:6]
        if kind in (0, 8):
            return b""
        assert offset + size <= self.size
        return self._data[offset : offset + size]

    @cached_property
    def sections(self) -> dict[str, tuple[Any, ...]]:
        """All of them."""
        return {name: self.section(name) for name in self.names}

    @property
    def misaligned(self) -> list[str]:
        """Sections that do not lie where their alignment says."""
        found = [(name, header) for name, header in zip(self.names, self.headers, strict=True)]
        return [name for name, header in found if header[1] not in (0, 8) and header[4] % max(1, header[8])]

    def section(self, name: str) -> tuple[Any, ...]:
        """Header and contents of a section."""
        number = self.names.index(name)
        _, kind, flags, address, _, size, link, info, alignment, entry = self.headers[number]
        contents = self._bytes(number)
        if name.startswith(".text."):
            told: Any = info >> 24, self.symbols[info & 0xFFFFFF]
        elif name == ".symtab":
            told = None
        else:
            told = self.names[info] if info else ""
        what: Any = contents
        if name in (".symtab", ".strtab", ".shstrtab") or name.endswith(".debug_frame"):
            what = None
        elif kind in (4, 9):
            entries = struct.iter_unpack("<QIIQ" if kind == 4 else "<QII", contents)
            what = [(place, how, self.symbols[symbol], *rest) for place, how, symbol, *rest in entries]
        elif name.startswith(".nv.info"):
            what = list(self._attributes(contents, name == ".nv.info"))
        elif name == ".nv.callgraph":
            pairs = struct.iter_unpack("<II", contents)
            what = [(self.symbols[one], self.symbols[two] if one else two) for one, two in pairs]
        return kind, flags, address, size if kind == 8 else None, self.names[link], told, alignment, entry, what

    def _attributes(self, data: bytes, of_all: bool) -> Any:
        at = 0
        while at < len(data):
            form, attribute, size = struct.unpack_from("<BBH", data, at)
            at += 4
            value = data[at : at + size] if form == 4 else b""
            at += len(value)
            words: list[Any] = list(struct.unpack(f"<{len(value) // 4}I", value[: len(value) // 4 * 4]))
            symbols = len(words) if attribute == 0x0F else int(of_all or attribute == 0x0A)
            yield form, attribute, size, [self.symbols[word] for word in words[:symbols]], words[symbols:]

    def frames(self) -> list[tuple[Any, ...]]:
        """Each function's call frames with what they share, and the symbols that both refer to."""
        table = next(name for name in self.names if name in (".rel.debug_frame", ".rela.debug_frame"))
        kind = self.sections[table][0]
        data, relocations = self._bytes(self.names.index(".debug_frame")), self._bytes(self.names.index(table))
        places = list(struct.iter_unpack("<QIIQ" if kind == 4 else "<QII", relocations))
        records, at = {}, 0
        while at < len(data):
            length, common = struct.unpack_from("<QQ", data, at + 4)
            end = at + 12 + length
            refers = [(p - at, how, self.symbols[s], *rest) for p, how, s, *rest in places if at <= p < end]
            records[at] = common, data[at + 20 : end], refers
            at = end
        assert sum(len(record[2]) for record in records.values()) == len(places)
        shared = 2**64 - 1
        return [(*record[1:], records[record[0]]) for record in records.values() if record[0] != shared]


def _name(strings: bytes, at: int) -> str:
    return strings[at:].partition(b"\0")[0].decode()
