"""What a comparison of graphs with eager passes found: one line for people, one of JSON for `foundry parity`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

EQUAL, DIFFERENT, REFUSED = "equal", "different", "refused"
VERDICTS = (EQUAL, DIFFERENT, REFUSED)


@dataclass(frozen=True)
class Report:
    """The outcome of one cache.

    `rounds` is split into those that ran eagerly on both sides and those that were captured, updated and replayed.
    `bytes` of outputs and state were compared. `controls` were planted, and `caught` of them found. `reason` says what
    differed, or why equal rounds prove nothing.
    """

    name: str
    verdict: str
    rounds: int = 0
    eager: int = 0
    captured: int = 0
    updated: int = 0
    replayed: int = 0
    bytes: int = 0
    seams: int = 0
    controls: int = 0
    caught: int = 0
    reason: str = ""

    def line(self) -> str:
        """Tell it in one line."""
        counted = (
            f"{self.rounds} rounds ({self.replayed} replayed, {self.updated} updated, {self.captured} captured, "
            f"{self.eager} eager), {self.seams} seams crossed, {self.bytes} bytes compared, "
            f"{self.caught} of {self.controls} controls caught"
        )
        return f"parity of {self.name}: {self.verdict}: {f'{self.reason}; ' if self.reason else ''}{counted}"

    def as_json(self) -> str:
        """Write it as one line of JSON."""
        return json.dumps(asdict(self))


def parse(line: str) -> Report:
    """Read a line of JSON. Raises ValueError for anything else."""
    found: Any = json.loads(line)
    wanted = {field.name: str if field.name in ("name", "verdict", "reason") else int for field in fields(Report)}
    if not isinstance(found, Mapping) or found.keys() != wanted.keys() or found.get("verdict") not in VERDICTS:
        raise ValueError("not a parity report")
    if any(type(found[name]) is not kind for name, kind in wanted.items()):
        raise ValueError("a parity report with values of another kind")
    return Report(**found)
