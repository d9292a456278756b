"""What keeps the adapters out of a Python command: options with which it looks at no PYTHONPATH or `sitecustomize`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from foundry import env

_PYTHON = re.compile(r"python(\d+(\.\d+)?t?)?")
_WITH_VALUE = "WX"
_LAST = "cm"
"""Options that take a value, and those after which the program's own arguments come."""
_AGAINST = "IES"


def keeps_adapters_out(arguments: Sequence[str]) -> str | None:
    """Name the option of this command that does so, None if there is none."""
    if not arguments or not _PYTHON.fullmatch(PurePath(arguments[0]).name):
        return None
    rest = iter(arguments[1:])
    for word in rest:
        if not word.startswith("-") or word == "-":
            return None
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(rest, None)
            continue
        for position, letter in enumerate(word[1:], 2):
            if letter in _AGAINST:
                return f"-{letter}"
            if letter in _LAST:
                return None
            if letter in _WITH_VALUE:
                if position == len(word):
                    next(rest, None)
                break
    return None


def warning(environment: Mapping[str, str]) -> str | None:
    """Name a value of FOUNDRY_ADAPTERS that says nothing, None if it is one of those that do."""
    value = environment.get(env.ADAPTERS, "")
    if value in ("", "0", "1"):
        return None
    return f"`{env.ADAPTERS}={value}` is ignored, it is neither 0 nor 1: adapters for engines are loaded"


def note(arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Say what this means for a command that is to have its adapters, None if nothing."""
    option = keeps_adapters_out(arguments) if environment.get(env.ADAPTERS) != env.ADAPTERS_OFF else None
    if option is None:
        return None
    return (
        f"`python {option}` leaves the adapters for engines and torch out, unless foundry is installed for that Python"
    )
