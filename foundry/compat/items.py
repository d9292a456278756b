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
MOST_OF_VALUE = 240
"""Of what differs, as people are told it; machines are told all."""
CONTEXT = 40
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
        before, now = _shortened(self.archive, self.here)
        return f"{self.code}: {where}{self.what}: archive {before}, here {now}"

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


def _shortened(one: str, other: str) -> tuple[str, str]:
    """Give two long values from shortly before where they begin to differ."""
    if max(len(one), len(other)) <= MOST_OF_VALUE:
        return one, other
    pairs = enumerate(zip(one, other, strict=False))
    same = next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
    begin = max(0, same - CONTEXT)
    return _part(one, begin), _part(other, begin)


def _part(text: str, begin: int) -> str:
    end = begin + MOST_OF_VALUE
    before, after = "... " if begin else "", " ..." if end < len(text) else ""
    return f"{before}{text[begin:end]}{after}"


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
