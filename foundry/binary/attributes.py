"""The attributes in `.nv.info` sections: which are known, and which of their words are symbols."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from foundry.binary.errors import ImageError

SIZED = 4
"""Attributes of this format are followed by as many bytes as their 16-bit value says."""
NO_SYMBOL, SYMBOL_FIRST, SYMBOLS = 0, 1, 2

_OF_FUNCTIONS = {0x11: "frame size", 0x12: "least stack", 0x23: "largest stack", 0x2F: "registers"}
_PLAIN = {
    1: (0x35, 0x3E),
    2: (0x4C,),
    3: (0x19, 0x1B, 0x38, 0x50, 0x5F),
    SIZED: (
        *(0x05, 0x10, 0x17, 0x1C, 0x1D, 0x1E, 0x28, 0x29, 0x2E, 0x31, 0x34),
        *(0x36, 0x37, 0x39, 0x3D, 0x44, 0x45, 0x46, 0x55),
    ),
}
_BANK, _EXTERNALS = 0x0A, 0x0F

OPERANDS = {
    **{(form, attribute): NO_SYMBOL for form, attributes in _PLAIN.items() for attribute in attributes},
    (SIZED, _BANK): SYMBOL_FIRST,
    (SIZED, _EXTERNALS): SYMBOLS,
}
"""By format and number of an attribute that stands with its kernel: which words are symbols. Others aren't known."""
_OF_FUNCTION = np.dtype([("form", "u1"), ("attribute", "u1"), ("size", "<u2"), ("symbol", "<u4"), ("value", "<u4")])


def of_functions(data: bytes) -> npt.NDArray[np.void]:
    """Give the attributes that stand together for all functions, each with the symbol of its function."""
    if len(data) % _OF_FUNCTION.itemsize:
        raise ImageError("attributes are cut")
    table = np.frombuffer(data, _OF_FUNCTION)
    known = (table["form"] == SIZED) & (table["size"] == 8) & np.isin(table["attribute"], list(_OF_FUNCTIONS))
    if not known.all():
        raise ImageError(f"attribute {int(table['attribute'][~known][0]):#x} of its functions is not known")
    return table


def records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Give number and whole record of each attribute."""
    at = 0
    while at < len(data):
        if len(data) - at < 4:
            raise ImageError("attributes are cut")
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        end = at + 4 + (size if form == SIZED else 0)
        if end > len(data):
            raise ImageError("an attribute passes the end of its section")
        if size % 4 if attribute == _EXTERNALS else size != 8 and attribute == _BANK:
            raise ImageError("an attribute has another size than usual")
        yield attribute, data[at:end]
        at = end
