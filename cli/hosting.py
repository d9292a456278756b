"""What `foundry verify --host` says: what of an archive fits this machine, and what does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foundry.compat.items import Item


def item_lines(archive: str, items: Sequence[Item]) -> list[str]:
    """Write a line for the whole, then one for each item that is not the same."""
    from foundry.compat.codes import allowable
    from foundry.compat.items import ORDER, Level, usable

    counts = Counter(item.level for item in items)
    numbers = ", ".join(f"{counts[level]} {level.value}" for level in ORDER if counts[level])
    told = [f"`{archive}` {'can be' if usable(items) else 'cannot be'} restored here: {numbers}"]
    for item in items:
        if item.level is not Level.SAME:
            told.append(f"{item.level.value}: {item}")
    blocking = dict.fromkeys(item.code for item in items if item.level is Level.REFUSE)
    if blocking:
        flags = " ".join(f"--allow {code}" for code in blocking if allowable(code))
        never = ", ".join(code for code in blocking if not allowable(code))
        told.append(f"never allowed: {never}" if never else f"can be allowed: {flags}")
    return told
