"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from foundry.errors import ArchiveError
from foundry.findings import Finding, Severity


class Level(str, Enum):
    """How much is looked at; each level holds the one before it."""

    QUICK = "quick"
    """Header, footer, table of contents and summary."""
    FULL = "full"
    """Every section unpacked and compared with its digest; every index and count."""
    DEEP = "deep"
    """Kernels against their images, pointers against the memory map, graphs against themselves."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an archive something is wrong; what does not apply is left out.

    `node` is a path of indices through child graphs. `offset` is the byte in the kernel's parameters, or in the row of
    a memset or copy.
    """

    process: str = ""
    graph: tuple[str, str] | None = None
    node: tuple[int, ...] = ()
    kernel: str = ""
    parameter: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.process:
            parts.append(f"process `{self.process}`")
        if self.graph:
            label, key = self.graph
            parts.append(f"graph `{label}` `{key}`" if label else f"graph `{key}`")
        if self.node:
            parts.append(f"node {' > '.join(map(str, self.node))}")
        if self.kernel:
            parts.append(f"kernel `{self.kernel}`")
        if self.parameter is not None:
            parts.append(f"parameter {self.parameter}")
        if self.offset is not None:
            parts.append(f"byte {self.offset}")
        return ", ".join(parts)

    def with_parameter(self, parameter: int) -> Place:
        """Name a parameter too."""
        return replace(self, parameter=parameter)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Place:
        """Read what `as_dict` gives."""
        graph = value["graph"]
        return cls(
            process=value["process"] or "",
            graph=(graph["set"], graph["key"]) if graph else None,
            node=tuple(value["node"] or ()),
            kernel=value["kernel"] or "",
            parameter=value["parameter"],
            offset=value["offset"],
        )

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "process": self.process or None,
            "graph": {"set": self.graph[0], "key": self.graph[1]} if self.graph else None,
            "node": list(self.node) or None,
            "kernel": self.kernel or None,
            "parameter": self.parameter,
            "offset": self.offset,
        }


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong (an error) or could not be looked at (a warning)."""

    code: str
    severity: Severity
    text: str
    place: Place = Place()

    @property
    def finding(self) -> Finding:
        """The same as a finding."""
        return Finding(self.code, self.severity, self.text, str(self.place))

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "code": self.code,
            "severity": self.severity.name.lower(),
            "text": self.text,
            "where": str(self.place),
            **self.place.as_dict(),
        }


def of_archive(error: ArchiveError, process: str = "") -> Problem:
    """Make a problem of what a reader says."""
    return Problem(error.code, Severity.ERROR, str(error).partition(": ")[2] or str(error), Place(process))


@dataclass(slots=True)
class Report:
    """What was looked at, and what came of it. `told` is what the archive says of itself."""

    capture_id: str
    level: Level
    sections: int
    raw_size: int
    processes: int
    graphs: int = 0
    nodes: int = 0
    kernels: int = 0
    kernels_checked: int = 0
    pointers: int = 0
    problems: list[Problem] = field(default_factory=list)
    told: tuple[Finding, ...] = ()

    def add(self, problem: Problem) -> None:
        """Keep a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return all(problem.severity < Severity.ERROR for problem in self.problems)

    @property
    def lacking(self) -> bool:
        """Whether it lacks something: it says so itself, or something could not be looked at."""
        severities = [*(item.severity for item in self.problems), *(item.severity for item in self.told)]
        return any(severity > Severity.NOTE for severity in severities)

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "capture_id": self.capture_id,
            "level": self.level.value,
            "sound": self.sound,
            "sections": self.sections,
            "raw_size": self.raw_size,
            "processes": self.processes,
            "graphs": self.graphs,
            "nodes": self.nodes,
            "kernels": self.kernels,
            "kernels_in_images": self.kernels_checked,
            "pointers": self.pointers,
            "problems": [problem.as_dict() for problem in self.problems],
            "findings": [item.as_dict() for item in self.told],
        }
