"""Reads the fields of one payload in order, never beyond its end."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from foundry.spool.blocks import Blocks

Value = TypeVar("Value")

U8 = struct.Struct("<B")
U16 = struct.Struct("<H")
U32 = struct.Struct("<I")
I32 = struct.Struct("<i")
U64 = struct.Struct("<Q")


class MalformedError(ValueError):
    """A payload does not have the fields of its kind."""


class Cursor:
    """A position in a payload, which begins at byte `start` of the file.

    Parameter blocks that are read from it are put into `blocks`.
    """

    __slots__ = ("at", "blocks", "data", "end", "start")

    def __init__(self, data: bytes, at: int, end: int, blocks: Blocks | None = None, start: int = 0) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.blocks = blocks or Blocks(end - at)
        self.start = start

    def too_long(self, what: str, at: int) -> MalformedError:
        """Make the error that says that something does not fit the payload."""
        place, end = self.start + at, self.start + self.end
        return MalformedError(f"{what} at {place} pass the end of the payload at {end}")

    def take(self, length: int) -> int:
        """Step over that many bytes and return where they start."""
        at = self.at
        if length > self.end - at:
            raise self.too_long(f"{length} bytes", at)
        self.at = at + length
        return at

    def u8(self) -> int:
        """Read an unsigned byte."""
        return self.data[self.take(1)]

    def u16(self) -> int:
        """Read 16 bits, unsigned."""
        return int(U16.unpack_from(self.data, self.take(2))[0])

    def u32(self) -> int:
        """Read 32 bits, unsigned."""
        return int(U32.unpack_from(self.data, self.take(4))[0])

    def i32(self) -> int:
        """Read 32 bits, signed."""
        return int(I32.unpack_from(self.data, self.take(4))[0])

    def u64(self) -> int:
        """Read 64 bits, unsigned."""
        return int(U64.unpack_from(self.data, self.take(8))[0])

    def raw(self, length: int) -> bytes:
        """Read that many bytes."""
        at = self.take(length)
        return self.data[at : at + length]

    def counted(self) -> bytes:
        """Read bytes with their length in front."""
        return self.raw(self.u32())

    def text(self) -> str:
        """Read a string; what is not UTF-8 in it is escaped."""
        return self.counted().decode("utf-8", "backslashreplace")

    def items(self, smallest: int, read: Callable[[Cursor], Value]) -> tuple[Value, ...]:
        """Read a list; `smallest` is the least size of an item, so that a wild count fails before it is believed."""
        count = self.u32()
        if count * smallest > self.end - self.at:
            raise self.too_long(f"{count} items", self.at)
        return tuple(read(self) for _ in range(count))
