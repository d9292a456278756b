"""How texts of an archive are worded for people."""

from __future__ import annotations

import re
from typing import Any

_MANGLED = re.compile(r"`(_Z\w+)`")


def named_reason(reason: str) -> str:
    """Write a reason with its kernel's name as C++ has it, without scopes and parameters."""
    from foundry.describe.demangle import short

    return _MANGLED.sub(lambda found: f"`{short(found[1])}`", reason)


def attribute(item: dict[str, Any]) -> str:
    """Write an attribute as `name value`."""
    return f"{item['name']} {value(item['value'])}"


def value(found: Any) -> str:
    """Write the value of an attribute."""
    if isinstance(found, dict):
        return ", ".join(f"{name} {value(one)}" for name, one in found.items())
    if isinstance(found, list):
        return "x".join(map(str, found))
    if isinstance(found, bool):
        return "yes" if found else "no"
    return str(found)
