"""The string table: zero-terminated, each string once, the empty one at offset 0."""

from __future__ import annotations


class Strings:
    """Collects strings and gives their offsets."""

    def __init__(self) -> None:
        self._offsets: dict[bytes, int] = {b"": 0}
        self._size = 1

    def add(self, value: str) -> int:
        """Add a string, up to its first zero byte, and return its offset."""
        data = value.encode("utf-8", "backslashreplace").partition(b"\0")[0]
        offset = self._offsets.get(data)
        if offset is None:
            offset = self._offsets[data] = self._size
            self._size += len(data) + 1
        return offset

    def packed(self) -> bytes:
        """Lay the table out."""
        return b"".join(data + b"\0" for data in self._offsets)
