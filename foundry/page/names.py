"""Kinds of kernels, short enough for a legend. They do not identify a kernel; its full name stands beside them."""

from __future__ import annotations

import re
from functools import lru_cache

from foundry.describe import demangle

_TELLING = re.compile(r"\b(?!gpu_kernel_impl)\w*(?:Functor\w*|_functor\w*|_kernel_cuda|_kernel_impl|Ops)\b")
_MEASURE = re.compile(r"\d+(x\d+)*")
LONGEST = 64


@lru_cache(maxsize=4096)
def family(name: str) -> str:
    """Name the kind of a kernel: its function and what that is made of, or what stands before the sizes in its name."""
    text = _templated(name) if name.startswith("_Z") else _plain(name)
    text = text or name
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _templated(name: str) -> str:
    base, _, arguments = demangle.short(name).partition("<")
    if base.startswith("_Z"):
        return base
    telling = _TELLING.search(arguments)
    return f"{base} · {telling.group()}" if telling and telling.group() not in base else base


def _plain(name: str) -> str:
    parts = name.split("_")
    end = next((at for at, part in enumerate(parts) if at and _MEASURE.fullmatch(part)), len(parts))
    return "_".join(parts[:end])
