"""How adapters replace methods of an engine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def replace(owner: Any, name: str, stand_in: Callable[..., Any]) -> None:
    """Have a method call `stand_in(plain, self, ...)`. Once more does no harm."""
    plain = getattr(owner, name)
    if hasattr(plain, "_foundry_plain"):
        return

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return stand_in(plain, self, *args, **kwargs)

    method._foundry_plain = plain  # type: ignore[attr-defined]
    setattr(owner, name, method)


def late(module: str, name: str) -> Callable[..., Any]:
    """Name a stand-in in a module that is imported at the first call: it imports torch, which is not here yet."""

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        import importlib

        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    return stand_in
