"""Finds the kernels of PTX by text. Their parameters are not laid out until the driver compiles it."""

from __future__ import annotations

import re

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(rb"\.entry\s+([A-Za-z_$%][\w$]*)")
_VERSION = re.compile(rb"(?:^|\n)\s*\.version\s+\d")


def looks_like_ptx(data: bytes) -> bool:
    """Tell whether the bytes are PTX: text that names its version."""
    text = data.rstrip(b"\0")
    return b"\0" not in text and _VERSION.search(text) is not None


def entry_names(data: bytes) -> frozenset[str]:
    """List the kernels."""
    return frozenset(name.decode("ascii", "replace") for name in _ENTRY.findall(_COMMENT.sub(b" ", data)))
