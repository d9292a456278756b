"""One line of what `foundry doctor` found, and where it looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from foundry.compat.probe import Machine

GOOD, NOTE, BAD = "ok", "note", "bad"
GPU, SIMULATOR = "gpu", "simulator"
BOTH = (GPU, SIMULATOR)


@dataclass(frozen=True)
class Check:
    """One line of the answer. `stops` tells on what a capture or restore cannot work because of it."""

    what: str
    state: str
    found: str
    hint: str = ""
    stops: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """For machines."""
        return {
            "what": self.what,
            "state": self.state,
            "found": self.found,
            "hint": self.hint or None,
            "stops": list(self.stops),
        }


@dataclass(frozen=True)
class Surroundings:
    """Where to look. `root` is the folder that `/proc` and the like lie in; `machine` what the driver said."""

    environment: Mapping[str, str]
    machine: Machine
    root: Path = field(default_factory=lambda: Path("/"))

    def text(self, path: str) -> str:
        """Read a small file; empty if it cannot be read."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return ""

    def number(self, path: str) -> int | None:
        """Read a number from a file; None if it cannot be had."""
        try:
            return int(self.text(path))
        except ValueError:
            return None

    def present(self, path: str) -> bool:
        """Whether there is such a file."""
        return (self.root / path).exists()


def good(what: str, found: str) -> Check:
    """Say that all is well."""
    return Check(what, GOOD, found)


def note(what: str, found: str, hint: str = "", stops: tuple[str, ...] = ()) -> Check:
    """Say what is good to know. One that `stops` something is no fault: a machine without a GPU is a good machine."""
    return Check(what, NOTE, found, hint, stops)


def bad(what: str, found: str, hint: str, stops: tuple[str, ...] = BOTH) -> Check:
    """Say what is wrong."""
    return Check(what, BAD, found, hint, stops)
