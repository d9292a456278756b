"""Canonical JSON, and strict reading of it: a missing or odd field is an error that names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")
Other = TypeVar("Other")

LARGEST_INTEGER = (1 << 53) - 1
LARGEST_WORD = (1 << 32) - 1


class ContentError(ValueError):
    """A section unpacked well, but does not say what it must."""


def encode(value: Any) -> bytes:
    """Write canonical JSON: sorted keys, no spaces, UTF-8, integers only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "backslashreplace"
    )


def decode(data: bytes) -> Fields:
    """Read a JSON object."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_float=_refuse, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise ContentError(f"text is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise ContentError("text nests too deep") from None
    except MemoryError:
        raise ContentError("text holds more than there is memory for") from None
    except ValueError as error:
        raise ContentError(f"text is not JSON: {error}") from None
    return Fields(value, "")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ContentError("a key is repeated")
    return result


def _refuse(text: str) -> Any:
    raise ContentError(f"`{text}` is not an integer")


class Fields:
    """A JSON object whose fields are read with their types checked. Unknown fields are ignored."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ContentError(f"`{where or 'text'}` is not an object")
        self._value: dict[str, Any] = value
        self._where = where

    def _get(self, key: str) -> Any:
        if key not in self._value:
            raise ContentError(f"`{self._where}{key}` is missing")
        return self._value[key]

    def has(self, key: str) -> bool:
        """Tell whether a field is there."""
        return key in self._value

    def object(self, key: str) -> Fields:
        """Read an object."""
        return Fields(self._get(key), self._where + key + ".")

    def integer(self, key: str, largest: int = LARGEST_INTEGER) -> int:
        """Read an integer from 0 to the largest."""
        return integer(self._get(key), self._where + key, largest)

    def wide(self, key: str) -> int:
        """Read an integer of up to 64 bits."""
        return wide(self._get(key), self._where + key)

    def hexadecimal(self, key: str, size: int | None = None) -> bytes:
        """Read bytes written as lower-case hexadecimal digits."""
        return hexadecimal(self._get(key), self._where + key, size)

    def text(self, key: str) -> str:
        """Read a string."""
        return text(self._get(key), self._where + key)

    def truth(self, key: str) -> bool:
        """Read true or false."""
        value = self._get(key)
        if not isinstance(value, bool):
            raise ContentError(f"`{self._where}{key}` is neither true nor false")
        return value

    def items(self, key: str, read: Callable[[Any, str], Value]) -> tuple[Value, ...]:
        """Read a list."""
        return items(self._get(key), self._where + key, read)

    def words(self, key: str) -> tuple[int, ...]:
        """Read a list of integers of up to 32 bits."""
        return words(self._get(key), self._where + key)

    def objects(self, key: str, read: Callable[[Fields], Value]) -> tuple[Value, ...]:
        """Read a list of objects."""
        return self.items(key, lambda value, where: read(Fields(value, where + ".")))

    def texts(self, key: str) -> dict[str, str]:
        """Read an object of strings."""
        inner = self.object(key)
        return {name: inner.text(name) for name in inner._value}

    def integers(self, key: str) -> dict[str, int]:
        """Read an object of integers, each written as hexadecimal digits if it is large."""
        inner = self.object(key)
        return {name: wide(inner._value[name], name) for name in inner._value}


def integer(value: Any, where: str, largest: int = LARGEST_INTEGER) -> int:
    """Check an integer from 0 to the largest."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ContentError(f"`{where}` is not an integer from 0 to {largest}")
    return value


def signed(value: Any, where: str) -> int:
    """Check a signed 32-bit integer."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 31) <= value < 1 << 31:
        raise ContentError(f"`{where}` is not a 32-bit integer")
    return value


def widened(value: int) -> int | str:
    """Write an integer of up to 64 bits: as it is, or as hexadecimal digits where a reader's numbers may be doubles."""
    return value if value <= LARGEST_INTEGER else f"{value:x}"


def wide(value: Any, where: str) -> int:
    """Check an integer of up to 64 bits."""
    if isinstance(value, str):
        if not 14 <= len(value) <= 16 or not set(value) <= set("0123456789abcdef"):
            raise ContentError(f"`{where}` is not a 64-bit integer")
        return int(value, 16)
    return integer(value, where)


def text(value: Any, where: str) -> str:
    """Check a string."""
    if not isinstance(value, str):
        raise ContentError(f"`{where}` is not a string")
    return value


def hexadecimal(value: Any, where: str, size: int | None = None) -> bytes:
    """Check hexadecimal digits."""
    digits = text(value, where)
    if len(digits) % 2 or not set(digits) <= set("0123456789abcdef"):
        raise ContentError(f"`{where}` is not hexadecimal")
    data = bytes.fromhex(digits)
    if size is not None and len(data) != size:
        raise ContentError(f"`{where}` has {len(data)} bytes instead of {size}")
    return data


def items(value: Any, where: str, read: Callable[[Any, str], Value]) -> tuple[Value, ...]:
    """Check a list."""
    if not isinstance(value, list):
        raise ContentError(f"`{where}` is not a list")
    return tuple(read(item, f"{where}[{index}]") for index, item in enumerate(value))


def words(value: Any, where: str) -> tuple[int, ...]:
    """Check a list of integers of up to 32 bits. Such lists are long: those that are sound are not looked at singly."""
    if isinstance(value, list) and set(map(type, value)) <= {int}:
        least, most = min(value, default=0), max(value, default=0)
        if least >= 0 and most <= LARGEST_WORD:
            return tuple(value)
    return items(value, where, lambda item, place: integer(item, place, LARGEST_WORD))


def pair(
    first: Callable[[Any, str], Value], second: Callable[[Any, str], Other]
) -> Callable[[Any, str], tuple[Value, Other]]:
    """Make the reader of a list of two."""

    def read(value: Any, where: str) -> tuple[Value, Other]:
        if not isinstance(value, list) or len(value) != 2:
            raise ContentError(f"`{where}` is not a pair")
        return first(value[0], where), second(value[1], where)

    return read
