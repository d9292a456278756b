"""What a cache did with passes."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Done(enum.Enum):
    """How a pass was run."""

    EAGER = "eager"
    CAPTURED = "captured"
    UPDATED = "updated"
    REPLAYED = "replayed"


@dataclass
class Counts:
    """Totals of a cache.

    The first four count passes, by how they were run; `warm` adds to `eager` and `captured`, too. `restored` graphs
    came from the archive, `dropped` ones made room, `refused` updates made another exec, `emptied` times memory ran
    low.
    """

    eager: int = 0
    captured: int = 0
    updated: int = 0
    replayed: int = 0
    restored: int = 0
    dropped: int = 0
    refused: int = 0
    emptied: int = 0
