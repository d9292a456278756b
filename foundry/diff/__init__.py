"""What differs between two captures, beginning at what matters most.

`examine` tells a person what changed; `compare` tells a test whether a restore sees any of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundry.diff.difference import Difference

if TYPE_CHECKING:
    from foundry.archive.opened import Opened
    from foundry.diff.report import Report
    from foundry.model import Capture

__all__ = ["Difference", "compare", "examine"]


def compare(before: Capture, after: Capture) -> list[Difference]:
    """Compare two captures: processes by role, graphs by set and key, nodes in order. Empty if a restore sees none.

    What is not compared, and why, stands in `foundry.diff.scope`.
    """
    from foundry.diff.processes import compare_captures

    return compare_captures(before, after)


def examine(before: Opened, after: Opened) -> Report:
    """Tell what changed between two open archives, by kind, and whether it is more than relocation or noise."""
    from foundry.diff.captures import examine_archives

    return examine_archives(before, after)
