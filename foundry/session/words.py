"""Numbers and sizes in lines for people."""

from __future__ import annotations


def count(number: int, one: str, many: str = "") -> str:
    """Write a number of things: `1 graph`, `2 graphs`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def readable_size(size: int) -> str:
    """Write a number of bytes for people."""
    if size < 1000:
        return f"{size} bytes"
    for unit in ("kB", "MB", "GB"):
        size_in_unit = size / {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
        if size_in_unit < 999.95 or unit == "GB":
            return f"{size_in_unit:.1f} {unit}"
    raise AssertionError
