"""One line of a comparison between an archive and a machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Level(str, Enum):
    """What an item means for a restore here."""

    REFUSE = "refuse"
    """A restore does not happen, or the process with this item is started plainly."""
    WARN = "warn"
    """A restore is tried; graphs may be given up."""
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


def usable(items: Iterable[Item]) -> bool:
    """Whether nothing speaks against a restore."""
    return all(item.level is not Level.REFUSE for item in items)
