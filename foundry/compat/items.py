"""One line of a comparison between an archive and a machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum


class Level(str, Enum):
    """What an item means for a restore here."""

    REFUSE = "refuse"
    """A restore does not happen, or the process with this item is started plainly."""
    WARN = "warn"
    """A restore is tried; graphs may be given up."""
    ALLOWED = "allowed"
    """It would be one of the above, but the user let it pass by its code."""
    NOTE = "note"
    """Not as it was at the capture, and harmless as far as can be known."""
    UNKNOWN = "unknown"
    """Cannot be known here."""
    SAME = "same"
    """As it was at the capture, or better."""


ORDER = tuple(Level)
"""Worst first."""
MISMATCH_CODE = 5
"""Exit status of a comparison in which something speaks against a restore."""


@dataclass(frozen=True)
class Item:
    """One thing that was compared. `code` is of `format_spec/registry.md`; `where` names a process, empty for all."""

    code: str
    what: str
    archive: str
    here: str
    level: Level
    where: str = ""

    def __str__(self) -> str:
        """For people; the hook words what it gives up for in the same way."""
        where = f"{self.where}: " if self.where else ""
        return f"{self.code}: {where}{self.what}: archive {self.archive}, here {self.here}"

    def as_dict(self) -> dict[str, str]:
        """For machines."""
        return {
            "code": self.code,
            "what": self.what,
            "where": self.where,
            "archive": self.archive,
            "here": self.here,
            "severity": self.level.value,
        }


def worst_first(items: Iterable[Item]) -> list[Item]:
    """Sort by level; items of one level keep their order."""
    return sorted(items, key=lambda item: ORDER.index(item.level))


def judged(items: Iterable[Item], allowed: Collection[str]) -> list[Item]:
    """Let pass what is allowed, worst first."""
    return worst_first(
        replace(item, level=Level.ALLOWED)
        if item.code in allowed and item.level in (Level.REFUSE, Level.WARN)
        else item
        for item in items
    )


def usable(items: Iterable[Item]) -> bool:
    """Whether nothing speaks against a restore."""
    return all(item.level is not Level.REFUSE for item in items)
