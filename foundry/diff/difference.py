"""One difference."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """`where` names the place, as `rank-0: graph decode/8: node 12`; `what` the thing; then its two values."""

    where: str
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: {self.before} -> {self.after}"
