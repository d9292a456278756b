"""The one error for a capture that contradicts itself, and how checks raise it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundry.model.constants import NONE

if TYPE_CHECKING:
    import numpy as np


class UnsoundError(ValueError):
    """A capture contradicts itself; the text says where."""


def require(condition: bool | np.bool_, text: str) -> None:
    """Raise UnsoundError with the text unless the condition holds."""
    if not condition:
        raise UnsoundError(text)


def require_index(value: int, count: int, what: str, *, optional: bool = False) -> None:
    """Raise UnsoundError unless the value is an index below the count, or NONE where that may be."""
    require(0 <= value < count or (optional and value == NONE), f"{what} refers to something that is not there")
