"""What became of the files of JIT caches in an archive when a command was to start."""

from __future__ import annotations

from dataclasses import dataclass, field

from foundry.caches.note import Marks


@dataclass
class Placed:
    """How it went, in files: placed now, found there equal, and left out because something else stands there.

    `marks` are for a note: by cache, what now stands at each path.
    """

    placed: int = 0
    there: int = 0
    kept: int = 0
    size: int = 0
    faults: list[str] = field(default_factory=list)
    marks: dict[str, Marks] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """For machines."""
        counts = {"placed": self.placed, "there": self.there, "kept": self.kept, "bytes": self.size}
        return {**counts, "faults": list(self.faults)}
