"""Reads the status file, in which hooked processes append one line each time they arm, disarm or commit."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

ARMED = "armed"
DISARMED = "disarmed"
COMMITTED = "committed"
RANGE_TAKEN = "range taken"
"""How the hook begins the reason when something stands where an arena must lie."""


@dataclass
class Status:
    """What the hooked processes have said so far, by role."""

    path: Path
    armed: set[str] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    disarmed: dict[str, str] = field(default_factory=dict)
    commits: int = 0
    _offset: int = 0
    _rest: bytes = b""

    def read(self) -> bool:
        """Read on; tell whether there was anything new."""
        try:
            if self.path.stat().st_size <= self._offset:
                return False
            with self.path.open("rb") as file:
                file.seek(self._offset)
                part = file.read()
        except OSError:
            return False
        self._offset += len(part)
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            self._take(os.fsdecode(line))
        return bool(lines)

    def _take(self, line: str) -> None:
        role, _, rest = line.partition(" ")
        state, _, reason = rest.partition(" ")
        if state.startswith("arm"):
            self.armed.add(role)
        elif state.startswith("disarm"):
            self.disarmed[role] = reason or "no reason given"
        elif state.startswith("commit"):
            self.committed.add(role)
            self.commits += 1

    @property
    def ready(self) -> bool:
        """Whether the program says that it is ready: a process has committed, and each armed rank has."""
        ranks = {role for role in self.armed if role.startswith("rank-")} - self.disarmed.keys()
        return bool(self.committed) and ranks <= self.committed

    @property
    def range_taken(self) -> str:
        """The reason of a process that could not get its address range, empty if none."""
        for reason in self.disarmed.values():
            if reason.startswith(RANGE_TAKEN):
                return reason
        return ""
