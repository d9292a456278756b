"""What differs between two captures, beginning at what a restore depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundry.diff.difference import Difference

if TYPE_CHECKING:
    from foundry.model import Capture

__all__ = ["Difference", "compare"]


def compare(before: Capture, after: Capture) -> list[Difference]:
    """Compare two captures: processes by role, graphs by set and key, nodes in order. Empty if a restore sees none.

    What is not compared, and why, stands in `foundry.diff.scope`.
    """
    from foundry.diff.processes import compare_captures

    return compare_captures(before, after)
