"""The one error for a capture that contradicts itself."""

from __future__ import annotations


class UnsoundError(ValueError):
    """A capture contradicts itself; the text says where."""
