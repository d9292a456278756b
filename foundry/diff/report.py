"""What a comparison finds: changes by kind, and one verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from foundry.model import NONE

MOST_KEPT = 10_000
"""Changes of a kind and strength that are kept; all are counted."""


class Kind(Enum):
    """What a change is of, most important first. The value is its name in documents."""

    PROCESSES = "processes"
    FINGERPRINT = "fingerprint"
    MEMORY = "memory"
    KERNELS = "kernels"
    TOPOLOGIES = "topologies"
    GRAPHS = "graphs"
    NODES = "nodes"
    EDGES = "edges"
    NOTES = "notes"


class Strength(IntEnum):
    """How much a change weighs. A NOTE says nothing about what the graphs do."""

    NOTE = 0
    RELOCATION = 1
    NOISE = 2
    DIFFERENT = 3

    @property
    def word(self) -> str:
        """Its name in documents; that of the verdict, if it is the strongest."""
        return ("equal", "relocation", "noise", "different")[self]


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `where` names the place, `what` the thing, then its two values; `count` how often it is so.

    `where` and `count` are those of the first and of all nodes or words that changed alike.
    """

    kind: Kind
    where: str
    what: str
    before: str
    after: str
    strength: Strength = Strength.DIFFERENT
    count: int = 1


@dataclass
class Report:
    """The changes between two captures. `words` counts parameter words that differ, by how they are judged."""

    before_id: str
    after_id: str
    changes: dict[Kind, list[Change]] = field(default_factory=lambda: {kind: [] for kind in Kind})
    counts: dict[Kind, dict[Strength, int]] = field(default_factory=lambda: {kind: {} for kind in Kind})
    words: dict[str, int] = field(default_factory=dict)
    _kept: Counter[tuple[Kind, Strength]] = field(default_factory=Counter)

    @property
    def identical(self) -> bool:
        """Whether both have the same capture id: then nothing was looked at."""
        return self.before_id == self.after_id

    @property
    def verdict(self) -> Strength:
        """The strongest of all changes."""
        return max((strength for counts in self.counts.values() for strength in counts), default=Strength.NOTE)

    def add(self, changes: Iterable[Change]) -> None:
        """Take in changes, in the order in which they are to be told."""
        for change in changes:
            self._count(change.kind, change.strength, 1)
            if self._kept[change.kind, change.strength] < MOST_KEPT:
                self._kept[change.kind, change.strength] += 1
                self.changes[change.kind].append(change)

    def room(self, kind: Kind, strength: Strength, wanted: int) -> int:
        """Tell how many of so many changes are still kept, and count the others."""
        kept = min(wanted, MOST_KEPT - self._kept[kind, strength])
        self._count(kind, strength, wanted - kept)
        return kept

    def _count(self, kind: Kind, strength: Strength, number: int) -> None:
        if number:
            self.counts[kind][strength] = self.counts[kind].get(strength, 0) + number

    def count_words(self, name: str, number: int) -> None:
        """Count parameter words that differ."""
        self.words[name] = self.words.get(name, 0) + number

    def strongest_first(self, kind: Kind) -> Iterator[Change]:
        """Go through the changes of a kind that are kept."""
        return iter(sorted(self.changes[kind], key=lambda change: -change.strength))


def unequal(kind: Kind, where: str, what: str, before: object, after: object) -> Iterator[Change]:
    """Give the change of a value, if it is one."""
    if before != after:
        yield Change(kind, where, what, text(before), text(after))


def note(where: str, what: str, before: object, after: object) -> Iterator[Change]:
    """Give the change of a value that says nothing about what the graphs do."""
    if before != after:
        yield Change(Kind.NOTES, where, what, text(before), text(after), Strength.NOTE)


def index_text(number: int) -> str:
    """Write an index or a step that may be NONE."""
    return "none" if number == NONE else f"{number:,}"


def text(value: object) -> str:
    """Write a value in one line."""
    if value is None:
        return "none"
    if value == "":
        return "empty"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return str(value)
